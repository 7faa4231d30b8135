"""The functions behind `broadreach.evaluate` and `broadreach eval`: which weights, which tasks, which folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadreach.config import Config, TaskSettings, load_config
from broadreach.runs.files import file_name
from broadreach.runs.folder import RunFolder
from broadreach.tasks.suites import Suite, get_suite
from broadreach.types import Centre, UserError

if TYPE_CHECKING:
    from broadreach.evaluation.baselines import BaselineResult
    from broadreach.evaluation.evaluate import Measured
    from broadreach.evaluation.seeds import SeedIntervals

EvalProgress = Callable[[str, int, int], None]
"""Called with (store name, problems stored, problems in all)."""


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """What `--baselines` asks for."""

    temperatures: tuple[float, ...]
    noise_sigma: float | None = None
    """Default: es.sigma of the run."""


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Sample stores of one task and their summaries; a run has two and their paired comparison."""

    stores: list[tuple[str, Path, dict[str, Any]]]
    """(name, folder, metrics)."""
    comparison: dict[str, Any] | None
    task: str = ""
    measured: dict[str, Measured] = field(default_factory=dict)
    """Store name -> metrics, greedy metrics, entropy."""
    baselines: list[BaselineResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The tasks of a suite that could be evaluated, and those that could not."""

    suite: str
    results: list[EvaluationResult]
    left_out: list[tuple[str, str]]
    """(task, reason)."""
    held_out: SeedIntervals | None
    """Change on the held-out tasks, averaged over them; None without a comparison."""


def evaluate(
    model_or_run: str | Path | RunFolder,
    task: str | None = None,
    *,
    step: int | None = None,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    baselines: BaselineSettings | None = None,
    progress: EvalProgress | None = None,
) -> EvaluationResult:
    """Evaluate a run (base and last update, or one `step`) or a plain model on `task`; stores are resumable.

    `overrides` are settings such as "eval.samples=8". UserError for anything the user can mend.
    """
    weights = _weights(model_or_run, step)
    if not weights.is_run and task is None:
        raise UserError(f"{weights.name} is not a run folder, so say what to ask it: --task NAME or --suite NAME")
    settings = _settings(weights, task, overrides)
    root = Path(out) if out else weights.folder(settings.task.name, settings.task.name)
    return _on_task(weights, settings, root, baselines, progress)


def evaluate_suite(
    model_or_run: str | Path | RunFolder,
    suite: str,
    *,
    step: int | None = None,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    baselines: BaselineSettings | None = None,
    progress: EvalProgress | None = None,
) -> SuiteResult:
    """Evaluate every task of a suite, each on its own split, with greedy responses and entropy unless `overrides` say
    otherwise; a task without data is left out and named.

    `baselines` are drawn on the target tasks. UserError when no task could be evaluated.
    """
    chosen = get_suite(suite)
    weights = _weights(model_or_run, step)
    results: list[EvaluationResult] = []
    left_out: list[tuple[str, str]] = []
    top = Path(out) if out else weights.folder(None, suite)
    for one in chosen.tasks:
        extra = ["eval.greedy=true", "eval.entropy=true", *overrides, f"eval.split={one.split}"]
        settings = _settings(weights, one.task, extra)
        root = top if weights.owns(one.task) else top / file_name(one.task)
        wanted = baselines if one in chosen.target else None
        try:
            results.append(_on_task(weights, settings, root, wanted, _named(progress, one.task)))
        except UserError as error:
            left_out.append((one.task, str(error)))
    if not results:
        reasons = "; ".join(f"{task}: {reason}" for task, reason in left_out)
        raise UserError(f"no task of suite {suite} could be evaluated: {reasons}")
    _write_suite(top, chosen, results, left_out)
    return SuiteResult(suite, results, left_out, _held_out_change(chosen, results))


@dataclass(frozen=True, slots=True)
class _Weights:
    """What is evaluated: sets of weights by store name, the base first."""

    name: str
    config: Config
    sources: list[str]
    centres: dict[str, Centre]
    run: RunFolder | None

    @property
    def is_run(self) -> bool:
        return self.run is not None

    def owns(self, task: str) -> bool:
        """Whether this is the run's training task, whose stores lie in eval/ itself."""
        return self.run is not None and task == self.config.task.name

    def folder(self, task: str | None, label: str) -> Path:
        if self.run is None:
            return Path("runs/eval") / f"{file_name(self.name)}-{file_name(label)}"
        return self.run.evaluations if task is None or self.owns(task) else self.run.evaluations / file_name(task)

    @property
    def siblings(self) -> Path | None:
        return None if self.run is None else self.run.path.resolve().parent


def _weights(model_or_run: str | Path | RunFolder, step: int | None) -> _Weights:
    from broadreach.models.locate import locate
    from broadreach.models.weights import load_centre
    from broadreach.training.rebuild import rebuild

    target = model_or_run.path if isinstance(model_or_run, RunFolder) else Path(model_or_run)
    run = RunFolder(target)
    if not run.exists():
        if step is not None:
            raise UserError(f"--step needs a run folder, and {target} is none")
        source = f"model.path={model_or_run}"
        centre = load_centre(locate(str(model_or_run)))
        return _Weights(str(model_or_run), load_config([], [source]), [source], {"model": centre}, None)
    steps = {f"step-{step}": step} if step is not None else {"base": 0, "final" if run.is_done() else "latest": None}
    centres = {name: rebuild(run, at)[0] for name, at in steps.items()}
    return _Weights(str(target), run.config(), [], centres, run)


def _settings(weights: _Weights, task: str | None, overrides: Sequence[str]) -> Config:
    """The run's settings with `overrides`; another task takes none of the training task's options or reward."""
    files = [weights.run.config_file] if weights.run is not None else []
    config = load_config(files, [*weights.sources, *overrides])
    if task is None or (task == weights.config.task.name and weights.is_run):
        return config
    given = load_config([], [item for item in overrides if item.startswith("task.")]).task
    values = {**given.model_dump(), "name": task, "shots": config.task.shots}
    return config.model_copy(update={"task": TaskSettings.model_validate(values)})


def _on_task(
    weights: _Weights, config: Config, root: Path, baselines: BaselineSettings | None, progress: EvalProgress | None
) -> EvaluationResult:
    from broadreach.evaluation.baselines import plan_baselines, run_baselines
    from broadreach.evaluation.evaluate import prepare_evaluation
    from broadreach.evaluation.plan import evaluation_plan
    from broadreach.evaluation.summary import compare_stores, write_json
    from broadreach.models.locate import locate

    wanted = []
    if baselines is not None:
        if "base" not in weights.centres and "model" not in weights.centres:
            raise UserError("--baselines are drawn from the base: leave --step out")
        sigma = config.es.sigma if baselines.noise_sigma is None else baselines.noise_sigma
        wanted = plan_baselines(baselines.temperatures, sigma, config.eval.temperature)
    notes: list[str] = []
    measured: dict[str, Measured] = {}
    drawn: list[BaselineResult] = []
    first = next(iter(weights.centres))
    base = root / "base" / "samples.jsonl"
    with prepare_evaluation(evaluation_plan(config), locate(config.model.path)) as evaluator:
        for name, centre in weights.centres.items():
            evaluator.put(centre)
            measured[name] = evaluator.measure(
                root / name,
                base=base if base.exists() or name == "base" else None,
                siblings=weights.siblings,
                progress=_named(progress, name),
                note=notes.append,
            )
        if wanted:
            evaluator.put(weights.centres[first])
            place, inside = _baseline_place(weights, config.task.name, root)
            store = root / first / "samples.jsonl"
            options: dict[str, Any] = {"siblings": weights.siblings, "progress": progress, "note": notes.append}
            drawn = run_baselines(evaluator, wanted, place, store, inside=inside, **options)
    stores = [(name, root / name, found.metrics) for name, found in measured.items()]
    comparison = None
    if len(stores) == 2:
        comparison = compare_stores(*(folder / "samples.jsonl" for _, folder, _ in stores))
        write_json(comparison, root / "comparison.json")
    return EvaluationResult(stores, comparison, config.task.name, measured, drawn, notes)


def _baseline_place(weights: _Weights, task: str, root: Path) -> tuple[Path, str]:
    """eval/baselines/NAME/ for the training task, eval/baselines/NAME/TASK/ for another one."""
    if weights.run is None or weights.owns(task) or root != weights.run.evaluations / file_name(task):
        return root / "baselines", ""
    return root.parent / "baselines", file_name(task)


def _named(progress: EvalProgress | None, prefix: str) -> EvalProgress | None:
    if progress is None:
        return None
    call = progress
    return lambda name, done, total: call(f"{prefix} {name}".strip(), done, total)


def _write_suite(
    root: Path, suite: Suite, results: Sequence[EvaluationResult], left_out: Sequence[tuple[str, str]]
) -> None:
    from broadreach.evaluation.summary import write_json

    values = {
        "suite": suite.name,
        "target": suite.target[0].task,
        "targets": [one.task for one in suite.target],
        "held_out": [one.task for one in suite.held_out],
        "tasks": [result.task for result in results],
        "left_out": [{"task": task, "reason": reason} for task, reason in left_out],
    }
    write_json(values, root / "suite.json")


def _held_out_change(suite: Suite, results: Sequence[EvaluationResult]) -> SeedIntervals | None:
    from broadreach.evaluation.metrics import pass_curve
    from broadreach.evaluation.seeds import suite_differences
    from broadreach.evaluation.table import load

    names = {one.task for one in suite.held_out}
    chosen = [result for result in results if result.task in names and result.comparison is not None]
    if not chosen:
        return None
    curves = [
        [pass_curve(load(folder / "samples.jsonl").correct) for _, folder, _ in result.stores] for result in chosen
    ]
    return suite_differences([after for _, after in curves], [before for before, _ in curves])
