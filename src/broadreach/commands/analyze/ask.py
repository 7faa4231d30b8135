"""Evaluating made-up weights of a run by the existing evaluation: what `threshold`, `path` and `precision` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadreach.types import Centre, UserError

if TYPE_CHECKING:
    from broadreach.config import Config
    from broadreach.runs.folder import RunFolder

Variant = tuple[str, Callable[[], Centre]]
"""Name of the store's folder, and what makes the weights."""


@dataclass(frozen=True, slots=True)
class AskOptions:
    """How the weights are asked; None: as the run's own evaluation."""

    task: str | None = None
    split: str | None = None
    samples: int | None = None
    problems: int | None = None
    temperature: float | None = None
    ks: tuple[int, ...] = ()
    """K of Pass@K; none: 1 and all responses."""
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One evaluated set of weights."""

    name: str
    folder: Path
    metrics: dict[str, Any]

    @property
    def store(self) -> Path:
        """Its responses."""
        return self.folder / "samples.jsonl"


def settings(run: RunFolder, options: AskOptions) -> Config:
    """The run's settings with those of the options on top."""
    from broadreach.config import TaskSettings, load_config

    run.config()  # UserError when this is no run folder
    names = ("split", "samples", "problems", "temperature")
    chosen = [f"eval.{name}={getattr(options, name)}" for name in names if getattr(options, name) is not None]
    config = load_config([run.config_file], [*chosen, *options.overrides])
    if options.task is not None and options.task != config.task.name:
        config = config.model_copy(update={"task": TaskSettings(name=options.task, shots=config.task.shots)})
    for k in options.ks:
        if not 1 <= k <= config.eval.samples:
            raise UserError(f"--k {k}: {config.eval.samples} responses a problem are drawn; raise --samples or lower K")
    return config


def ask(
    config: Config,
    model_dir: Path,
    variants: Iterable[Variant],
    root: Path,
    progress: Callable[[str, int, int], None],
    siblings: Path | None = None,
) -> list[Answer]:
    """Sample and grade every variant into ROOT/NAME, going on where an earlier call stopped.

    `siblings`: a folder of runs in which an equal store may lie already. UserError as the evaluation's.
    """
    from broadreach.evaluation.evaluate import prepare_evaluation
    from broadreach.evaluation.plan import evaluation_plan

    found = []
    with prepare_evaluation(evaluation_plan(config), model_dir) as evaluator:
        for name, make in variants:
            evaluator.put(make())

            def advance(done: int, total: int, name: str = name) -> None:
                progress(name, done, total)

            metrics = evaluator.sample(root / name, siblings=siblings, progress=advance)
            found.append(Answer(name, root / name, metrics))
    return found


def score_rows(
    answer: Answer, references: Mapping[str, Answer], ks: Sequence[int], facts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """One row for mean reward and each Pass@K: value and interval, and paired differences to the `references`."""
    from broadreach.evaluation.summary import at_k, compare_stores

    reward = {**facts, "metric": "reward", "k": None, **answer.metrics["mean_reward"]}
    rows = [reward]
    compared = {name: compare_stores(one.store, answer.store) for name, one in references.items()}
    for k in ks or sorted({1, int(answer.metrics["samples"])}):
        row = {**facts, "metric": "pass", "k": k, **_ends(at_k(answer.metrics["pass_at_k"], k))}
        for name, comparison in compared.items():
            change = _ends(at_k(comparison["pass_at_k"], k))
            row |= {f"minus_{name}{'_' * (end != 'value')}{end * (end != 'value')}": change[end] for end in change}
        rows.append(row)
    return rows


def shown(row: Mapping[str, Any], name: str = "") -> str:
    """`12.3 [10.1, 14.2]` in percent; with `name`, the paired difference to it."""
    prefix = f"minus_{name}" if name else ""
    if prefix and prefix not in row:
        return ""
    keys = (prefix, f"{prefix}_low", f"{prefix}_high") if prefix else ("value", "low", "high")
    value, low, high = (100 * float(row[key]) for key in keys)
    sign = "+" if prefix else ""
    return f"{value:{sign}.1f} \\[{low:{sign}.1f}, {high:{sign}.1f}]"


def _ends(entry: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(entry[name]) for name in ("value", "low", "high")}
