"""Several runs side by side: grouped by method, over one base, the same tasks and the same problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadreach.evaluation.metrics import maj_curve, pass_curve
from broadreach.evaluation.statistics import Floats, small_sample_warning
from broadreach.evaluation.store import differing_keys
from broadreach.evaluation.summary import FREE_KEYS
from broadreach.evaluation.table import SampleTable
from broadreach.report.comparison_runs import ModelStore, RunRecord, differing_settings, read_record
from broadreach.types import UserError

Progress = Callable[[str], None]
PAPER_KS = (1, 16, 32)
NAMES = {"es": "ES", "grpo": "GRPO"}


@dataclass(frozen=True, slots=True)
class Method:
    """One way of training, with a run for each seed."""

    key: str
    """Short and unique on the page: m0, m1, ..."""
    name: str
    """"es", "grpo", "es->grpo", ..."""
    label: str
    """How the page calls it: "ES", "GRPO", "ES→GRPO"; with the setting that differs where there are two of a kind."""
    runs: tuple[RunRecord, ...]
    """In the order of their seeds."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Its training seeds."""
        return tuple(run.seed for run in self.runs)


@dataclass(frozen=True, slots=True)
class TaskData:
    """One task with the stores of the base and of every method."""

    name: str
    target: bool
    base: ModelStore
    stores: dict[str, tuple[ModelStore, ...]]
    """Method key -> a store for each seed."""
    passes: dict[str, Floats]
    """"base" -> Pass@K [problems, K]; method key -> [seeds, problems, K]."""
    majorities: dict[str, Floats]
    """The same for Maj@K."""

    @property
    def problems(self) -> int:
        """How many."""
        return len(self.base.table.problem_ids)

    @property
    def private(self) -> bool:
        """Its texts must not be shown."""
        return self.base.table.header.private


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that the page is drawn from."""

    methods: tuple[Method, ...]
    tasks: tuple[TaskData, ...]
    """The target first."""
    ks: tuple[int, ...]
    """Which K tables show, limited by the stored samples."""
    unfinished: tuple[str, ...]
    """Runs that were not trained to their end, in words."""
    notes: tuple[str, ...] = field(default=())

    @property
    def samples(self) -> int:
        """Responses a problem: the largest K."""
        return self.tasks[0].base.table.header.samples

    @property
    def targets(self) -> tuple[TaskData, ...]:
        """What was trained on."""
        return tuple(task for task in self.tasks if task.target)

    @property
    def held_out(self) -> tuple[TaskData, ...]:
        """What was not."""
        return tuple(task for task in self.tasks if not task.target)

    def first(self, name: str) -> Method | None:
        """The first method of a name, in the order the runs were given."""
        return next((method for method in self.methods if method.name == name), None)

    @property
    def model(self) -> str:
        """The base model as the settings name it, without folders."""
        return str(self.methods[0].runs[0].setting("model", "path", "model")).rstrip("/").rsplit("/", 1)[-1]


def read_comparison(
    paths: Sequence[str | Path], ks: Sequence[int] | None = None, progress: Progress | None = None
) -> Comparison:
    """Read run folders and group them by method.

    UserError in one line when a folder is no run or not evaluated, when runs differ in evaluation settings, problem
    sets, tasks or base (the differences are listed), when one method has the same seed twice, or when fewer responses
    than one of `ks` are stored. Without `ks`, those of PAPER_KS that are stored.
    """
    if not paths:
        raise UserError("name at least one run folder; `broadreach runs` lists the runs")
    tables: dict[str, SampleTable] = {}
    runs = [read_record(path, progress, tables) for path in paths]
    _refuse_other_bases(runs)
    methods = _grouped(runs)
    reference = runs[0]
    names = sorted(reference.base, key=lambda name: (name in reference.held_out, name != reference.target, name))
    tasks = tuple(_task(name, name not in reference.held_out, methods, reference.base[name]) for name in names)
    samples = {task.base.table.header.samples for task in tasks}
    if len(samples) > 1:
        said = ", ".join(f"{task.name} {task.base.table.header.samples}" for task in tasks)
        raise UserError(f"the tasks have different numbers of responses a problem ({said}); evaluate them alike")
    largest = samples.pop()
    if ks is not None and max(ks) > largest:
        raise UserError(
            f"--k {max(ks)}: only {largest} responses a problem are stored; lower --k, or evaluate with more"
        )
    wanted = PAPER_KS if ks is None else ks
    chosen = tuple(sorted({k for k in wanted if k <= largest} | {1, largest if max(wanted) > largest else 1}))
    return Comparison(methods, tasks, chosen, _unfinished(runs), _notes(methods, tasks, largest, wanted))


def method_label(name: str) -> str:
    """es->grpo -> ES→GRPO."""
    return "→".join(NAMES.get(part, part.upper()) for part in name.split("->"))


def _refuse_other_bases(runs: Sequence[RunRecord]) -> None:
    first = runs[0]
    found: list[str] = []
    for other in runs[1:]:
        lacking = [
            f"{here.path} was not evaluated on {name} (broadreach eval {here.path} --task {name})"
            for here, there in ((other, first), (first, other))
            for name in sorted(there.base.keys() - here.base.keys())
        ]
        found += [text for text in lacking if text not in found]
    for run in runs:
        for name in first.base.keys() & run.base.keys():
            reference = first.base[name].table
            base = differing_keys(reference.header, run.base[name].table.header)
            after = differing_keys(reference.header, run.after[name].table.header, allowed=FREE_KEYS)
            found += [f"{name}, {first.path} against {run.path}: {text}" for text in dict.fromkeys([*base, *after])]
    if found:
        raise UserError(f"these runs cannot be compared: {'; '.join(dict.fromkeys(found))}; evaluate all alike")


def _grouped(runs: Sequence[RunRecord]) -> tuple[Method, ...]:
    groups: list[list[RunRecord]] = []
    for run in runs:
        home = next((g for g in groups if g[0].method == run.method and not differing_settings(g[0], run)), None)
        if home is None:
            groups.append([run])
            continue
        twin = next((other for other in home if other.seed == run.seed), None)
        if twin is not None:
            raise UserError(
                f"{twin.path} and {run.path} are the same method ({run.method}) with the same settings and seed "
                f"{run.seed}: leave one out"
            )
        home.append(run)
    order = {"es": 0, "grpo": 1, "es->grpo": 2, "grpo->es": 3}
    groups.sort(key=lambda group: order.get(group[0].method, 9))
    return tuple(
        Method(
            f"m{index}",
            group[0].method,
            _label(group[0], [g[0] for g in groups]),
            tuple(sorted(group, key=lambda run: run.seed)),
        )
        for index, group in enumerate(groups)
    )


def _label(run: RunRecord, firsts: Sequence[RunRecord]) -> str:
    """The method, with the settings (or else the folder) that tell it from another group of the same method."""
    name = method_label(run.method)
    rivals = [other for other in firsts if other.method == run.method and other is not run]
    if not rivals:
        return name
    keys = list(dict.fromkeys(key for rival in rivals for key in differing_settings(run, rival)))
    told = ", ".join(f"{key.rsplit('.', 1)[-1]} {run.settings.get(key)}" for key in keys)
    return f"{name} ({told if 0 < len(keys) <= 2 else run.path.name})"


def _task(name: str, target: bool, methods: Sequence[Method], base: ModelStore) -> TaskData:
    import numpy as np

    stores = {method.key: tuple(run.after[name] for run in method.runs) for method in methods}
    passes: dict[str, Floats] = {"base": pass_curve(base.table.correct)}
    majorities: dict[str, Floats] = {"base": maj_curve(base.table.keys, base.table.correct)}
    for key, found in stores.items():
        passes[key] = np.stack([pass_curve(store.table.correct) for store in found])
        majorities[key] = np.stack([maj_curve(store.table.keys, store.table.correct) for store in found])
    return TaskData(name, target, base, stores, passes, majorities)


def _unfinished(runs: Sequence[RunRecord]) -> tuple[str, ...]:
    said = []
    for run in runs:
        if not run.done:
            planned = run.setting("train", "updates")
            of = f" of {planned}" if planned else ""
            said.append(f"{run.path} ({len(run.metrics)}{of} updates)")
    return tuple(said)


def _notes(methods: Sequence[Method], tasks: Sequence[TaskData], samples: int, ks: Sequence[int]) -> tuple[str, ...]:
    found = [f"{task.name}: {text}" for task in tasks if (text := small_sample_warning(task.problems))]
    counts = {method.label: len(method.runs) for method in methods}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{label} {count}" for label, count in counts.items())
        found.append(f"numbers of seeds differ ({said}); differences between methods use the seeds that both have")
    dropped = [k for k in ks if k > samples]
    if dropped:
        found.append(f"K = {', '.join(map(str, dropped))} left out: only {samples} responses a problem are stored")
    for task in tasks:
        stores = [task.base, *(store for found_stores in task.stores.values() for store in found_stores)]
        errors = sum(int(store.table.error.sum()) for store in stores)
        if errors:
            found.append(f"{task.name}: {errors} responses could not be judged and count as wrong")
    if any(run.setting("verify", "allow_unsandboxed") for method in methods for run in method.runs):
        found.append("model-written code ran without a sandbox (verify.allow_unsandboxed)")
    return tuple(found)
