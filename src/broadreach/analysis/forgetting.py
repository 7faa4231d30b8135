"""Continual learning: the accuracy matrix over stages and tasks, forgetting, backward and forward transfer.

Lopez-Paz and Ranzato (2017), with R[i, j] the accuracy on task j after stage i, stages 1 to T trained on tasks 1 to T,
and R[0, j] that of the base model (their random initialisation b):

    average accuracy     mean_j R[T, j]
    backward transfer    mean_{j < T} (R[T, j] - R[j, j])
    forward transfer     mean_{j > 1} (R[j-1, j] - R[0, j])
    average forgetting   mean_{j < T} (max_{1 <= i < T} R[i, j] - R[T, j])   (Chaudhry et al. 2018)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.evaluation.statistics import DRAWS, LEVEL, Floats, Interval, intervals, seed_draws
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class Continual:
    """A sequence of tasks, learned one after the other."""

    tasks: tuple[str, ...]
    """Trained on, in order."""
    matrix: tuple[tuple[Interval, ...], ...]
    """[1 + T stages][T tasks], the base first."""
    average_accuracy: Interval
    average_forgetting: Interval
    backward_transfer: Interval
    forward_transfer: Interval


def continual(
    tasks: Sequence[str], scores: Sequence[Floats], *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Continual:
    """Measures of T tasks from per-problem scores, one [1 + T stages, problems of the task] a task.

    Problems of each task are resampled on their own, once for all stages (paired). UserError for fewer than two tasks,
    or a matrix with a stage missing.
    """
    count = len(tasks)
    if count < 2 or len(scores) != count:
        raise UserError(f"continual learning over {count} tasks: give at least two, with scores for each")
    for task, table in zip(tasks, scores, strict=True):
        if table.ndim != 2 or table.shape[0] != count + 1 or table.shape[1] == 0:
            raise UserError(f"task {task}: scores of shape {table.shape}; give the base and {count} stages by problem")
    centre = np.stack([table.mean(axis=1) for table in scores], axis=1)
    resampled = np.stack(
        [seed_draws(table.T[None], draws, seed, stream) for stream, table in enumerate(scores)], axis=2
    )
    problems = sum(table.shape[1] for table in scores)
    cells = intervals(centre.ravel(), resampled.reshape(draws, -1), level, problems)
    values, spread = _measures(centre[None]), _measures(resampled)
    measures = intervals(values[0], spread, level, problems)
    return Continual(
        tuple(tasks),
        tuple(tuple(cells[row * count : (row + 1) * count]) for row in range(count + 1)),
        *measures,
    )


def _measures(matrix: NDArray[np.float64]) -> Floats:
    """[cases, 1 + T, T] -> [cases, 4]: average accuracy, forgetting, backward and forward transfer."""
    count = matrix.shape[2]
    final = matrix[:, count, :]
    diagonal = np.stack([matrix[:, j + 1, j] for j in range(count)], axis=1)
    before = np.stack([matrix[:, j, j] for j in range(1, count)], axis=1)
    best = matrix[:, 1:count, :-1].max(axis=1)
    columns = [
        final.mean(axis=1),
        (best - final[:, :-1]).mean(axis=1),
        (final - diagonal)[:, :-1].mean(axis=1),
        (before - matrix[:, 0, 1:]).mean(axis=1),
    ]
    return np.stack(columns, axis=1)
