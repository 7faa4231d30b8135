"""The functions behind `broadreach.train` and `broadreach.evaluate`, shared by scripts and commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadreach.config import Config, load_config
from broadreach.runs.folder import RunFolder
from broadreach.training.reporter import Reporter, Silent
from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.evaluation.evaluate import EvaluationPlan
    from broadreach.types import Centre

EvalProgress = Callable[[str, int, int], None]
"""Called with (store name, problems stored, problems in all)."""


def run_folder(config: Config) -> RunFolder:
    """The folder of this run: `run.dir`, or runs/<task>-seed<seed>."""
    return RunFolder(config.run.dir or f"runs/{_file_name(config.task.name)}-seed{config.seed}")


def train(config: Config, reporter: Reporter | None = None) -> RunFolder:
    """Train as the configuration says and return the run folder; a run that was interrupted goes on.

    UserError for anything the user can mend.
    """
    run = run_folder(config)
    start(config, run, reporter or Silent())
    return run


def start(config: Config, run: RunFolder, reporter: Reporter) -> None:
    """Train in `run`, or go on with it, by the method or the stages of the settings."""
    from broadreach.training.budget import write_budget

    try:
        if config.train.stages:
            from broadreach.training import sequence

            sequence.train(config, run, reporter)
        else:
            from broadreach.training.methods import training_method

            training_method(config.train.method)(config, run, reporter)
    finally:
        write_budget(run)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Sample stores and their summaries; a run has two and their paired comparison."""

    stores: list[tuple[str, Path, dict[str, Any]]]
    """(name, folder, metrics)."""
    comparison: dict[str, Any] | None


def evaluate(
    model_or_run: str | Path | RunFolder,
    task: str | None = None,
    *,
    step: int | None = None,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    progress: EvalProgress | None = None,
) -> EvaluationResult:
    """Evaluate a run (base and last update, or one `step`) or a plain model on `task`; stores are resumable.

    `overrides` are settings such as "eval.samples=8". UserError for anything the user can mend.
    """
    target = model_or_run.path if isinstance(model_or_run, RunFolder) else Path(model_or_run)
    run = RunFolder(target)
    if run.exists():
        return _evaluate_run(run, task, step, out, overrides, progress)
    if step is not None:
        raise UserError(f"--step needs a run folder, and {target} is none")
    if task is None:
        raise UserError(f"{target} is not a run folder, so say what to ask it: --task NAME (`broadreach tasks list`)")
    settings = [f"model.path={model_or_run}", f"task.name={task}", *overrides]
    config = load_config([], settings)
    folder = Path(out) if out else Path("runs/eval") / f"{_file_name(str(model_or_run))}-{_file_name(task)}"
    return EvaluationResult([_evaluate(config, folder, "model", None, progress)], None)


def _evaluate_run(
    run: RunFolder,
    task: str | None,
    step: int | None,
    out: str | Path | None,
    overrides: Sequence[str],
    progress: EvalProgress | None,
) -> EvaluationResult:
    from broadreach.evaluation.summary import compare_stores, write_json
    from broadreach.training.rebuild import rebuild

    run.config()
    chosen = [] if task is None else [f"task.name={task}"]
    config = load_config([run.config_file], [*chosen, *overrides])
    root = Path(out) if out else run.evaluations / ("" if task in (None, run.config().task.name) else _file_name(task))
    if step is not None:
        return EvaluationResult([_evaluate(config, root, f"step-{step}", rebuild(run, step)[0], progress)], None)
    after = "final" if run.is_done() else "latest"
    stores = [
        _evaluate(config, root, "base", rebuild(run, 0)[0], progress),
        _evaluate(config, root, after, rebuild(run)[0], progress),
    ]
    comparison = compare_stores(*(folder / "samples.jsonl" for _, folder, _ in stores))
    write_json(comparison, root / "comparison.json")
    return EvaluationResult(stores, comparison)


def _evaluate(
    config: Config, root: Path, name: str, centre: Centre | None, progress: EvalProgress | None
) -> tuple[str, Path, dict[str, Any]]:
    from broadreach.evaluation.evaluate import evaluate_weights
    from broadreach.models.locate import locate

    folder = root / name

    def advance(done: int, total: int) -> None:
        if progress is not None:
            progress(name, done, total)

    return name, folder, evaluate_weights(_plan(config), locate(config.model.path), folder, centre, advance)


def _plan(config: Config) -> EvaluationPlan:
    from broadreach.evaluation.evaluate import EvaluationPlan

    wanted = config.eval
    return EvaluationPlan(
        task=config.task,
        split=wanted.split,
        samples=wanted.samples,
        temperature=wanted.temperature,
        max_new_tokens=wanted.max_new_tokens or config.sampling.max_new_tokens,
        problems=wanted.problems,
        seed=wanted.seed,
        dtype=config.model.dtype,
        engine=config.engine,
        verify=config.verify,
    )


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-")
