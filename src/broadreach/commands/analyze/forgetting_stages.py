"""A run of stages on several tasks, evaluated after every stage on every task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from broadreach.analysis.forgetting import Continual, continual
from broadreach.commands.analyze.ask import AskOptions, Variant, ask, settings
from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.table import load
from broadreach.models.locate import locate
from broadreach.runs.files import file_name
from broadreach.runs.folder import RunFolder
from broadreach.training.rebuild import rebuild
from broadreach.training.stages import plan_stages, read_stages
from broadreach.types import Centre, UserError


def stage_tasks(run: RunFolder) -> list[str]:
    """The task of every stage in order; empty for a run without stages."""
    config = run.config()
    return [settings.task.name for _, settings in plan_stages(config, run)] if config.train.stages else []


def measure_stages(run: RunFolder, options: AskOptions, k: int | None, place: Path) -> dict[int, Continual]:
    """K -> the measures, for K = 1 and `k` (default: all responses); stores lie in PLACE/TASK/stage-N.

    UserError for a run that is not finished.
    """
    if not run.is_done():
        raise UserError(f"{run.path} is not finished: its last stage has no weights yet")
    tasks = stage_tasks(run)
    ends = [0]
    for stage in read_stages(run):
        ends.append(ends[-1] + stage.updates)
    curves = {task: _curves(run, task, ends, options, place / file_name(task)) for task in dict.fromkeys(tasks)}
    samples = next(iter(curves.values())).shape[2]
    if k is not None and k > samples:
        raise UserError(f"--k {k}: {samples} responses a problem are drawn; raise --samples or lower K")
    return {at: continual(tasks, [curves[task][:, :, at - 1] for task in tasks]) for at in sorted({1, k or samples})}


def matrix_rows(k: int, found: Continual) -> list[dict[str, Any]]:
    """Tidy rows: the matrix, then the four measures."""
    rows: list[dict[str, Any]] = []
    for stage, line in enumerate(found.matrix):
        for task, cell in zip(found.tasks, line, strict=True):
            row = {"measure": "accuracy", "k": k, "stage": stage, "task": task, "value": cell.value}
            rows.append(row | {"low": cell.low, "high": cell.high})
    for name in ("average_accuracy", "average_forgetting", "backward_transfer", "forward_transfer"):
        cell = getattr(found, name)
        row = {"measure": name, "k": k, "stage": None, "task": None, "value": cell.value}
        rows.append(row | {"low": cell.low, "high": cell.high})
    return rows


def _curves(run: RunFolder, task: str, ends: list[int], options: AskOptions, place: Path) -> Any:
    """Pass@K by stage and problem: [1 + stages, problems, K]."""
    import numpy as np
    from rich.console import Console

    from broadreach.commands.progress import problem_bar

    config = settings(run, replace(options, task=task))
    variants: list[Variant] = [(f"stage-{number}", partial(_end, run, end)) for number, end in enumerate(ends)]
    with problem_bar(Console(stderr=True)) as progress:

        def tell(name: str, done: int, total: int) -> None:
            progress(f"{task} {name}", done, total)

        answers = ask(config, locate(config.model.path), variants, place, tell)
    return np.stack([pass_curve(load(answer.store).correct) for answer in answers])


def _end(run: RunFolder, step: int) -> Centre:
    return rebuild(run, step)[0]
