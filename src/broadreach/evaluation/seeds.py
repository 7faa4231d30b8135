"""Several training seeds: intervals of means and of paired differences, with seeds as the outer level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from broadreach.evaluation.statistics import DRAWS, LEVEL, Floats, Interval, intervals, seed_draws
from broadreach.types import UserError

FEW_SEEDS = 10


@dataclass(frozen=True, slots=True)
class SeedIntervals:
    """One interval for each K, all under the same draws."""

    intervals: tuple[Interval, ...]
    """K = 1 first."""
    seeds: int
    problems: int

    @property
    def note(self) -> str:
        """What the intervals cover, in one line for readers."""
        if self.seeds == 1:
            return f"one seed: the intervals cover the choice of {self.problems} problems, not of the training seed"
        text = f"the intervals cover {self.seeds} training seeds (outer level) and {self.problems} problems"
        if self.seeds < FEW_SEEDS:
            short = 1 - np.sqrt(1 - 1 / self.seeds)
            text += f"; resampling so few seeds understates the spread between them by about {short:.0%}"
        return text

    def at(self, k: int) -> Interval:
        """The interval of one K; UserError when fewer responses were drawn."""
        check_k(k, len(self.intervals))
        return self.intervals[k - 1]


def seed_means(curves: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> SeedIntervals:
    """Mean curve over seeds and problems: Pass@K (or any columns) [seeds, problems, K] or [problems, K].

    Percentile bootstrap of seeds and, once for all seeds, of problems; with one seed, of problems alone.
    """
    return suite_means([curves], draws=draws, level=level, seed=seed)


def seed_differences(
    a: ArrayLike, b: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> SeedIntervals:
    """Mean paired difference a - b: a [seeds, problems, K] against b of the same shape (paired by seed and problem),
    or against [problems, K], such as the base, which has no training seed.

    ValueError when problems, K or the numbers of seeds differ.
    """
    return suite_differences([a], [b], draws=draws, level=level, seed=seed)


def suite_means(
    tasks: Sequence[ArrayLike], *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> SeedIntervals:
    """As `seed_means` for the average over tasks, which weigh equally: one [seeds, problems of the task, K] a task.

    Problems are resampled within each task, the seeds once for all tasks.
    """
    return _average([as_seeds(task) for task in tasks], draws, level, seed)


def suite_differences(
    a: Sequence[ArrayLike], b: Sequence[ArrayLike], *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> SeedIntervals:
    """As `seed_differences` for the average over tasks (a held-out change, for example)."""
    if len(a) != len(b):
        raise ValueError(f"suite_differences: {len(a)} and {len(b)} tasks; give the same tasks in the same order")
    return _average([_difference(first, second) for first, second in zip(a, b, strict=True)], draws, level, seed)


def as_seeds(curves: ArrayLike) -> Floats:
    """[problems, K] or [seeds, problems, K] -> finite [seeds, problems, K]; ValueError for anything else."""
    table = np.asarray(curves, dtype=np.float64)
    table = table[None] if table.ndim == 2 else table
    if table.ndim != 3 or table.size == 0 or not np.isfinite(table).all():
        raise ValueError(f"curves have shape {np.shape(curves)}; give finite [seeds, problems, K] or [problems, K]")
    return table


def check_k(k: int, samples: int) -> None:
    """UserError when K responses were not drawn."""
    if not 1 <= k <= samples:
        raise UserError(f"K = {k}, but the stores hold {samples} responses a problem; draw more, or lower K")


def _difference(a: ArrayLike, b: ArrayLike) -> Floats:
    first, second = as_seeds(a), as_seeds(b)
    seeds_fit = len(second) in (1, len(first)) and (np.ndim(b) == 2 or len(first) == len(second))
    if first.shape[1:] != second.shape[1:] or not seeds_fit:
        raise ValueError(
            f"seed differences: shapes {np.shape(a)} and {np.shape(b)}; give the same problems, K and seeds, "
            "or [problems, K] for a model without training seed"
        )
    return first - second


def _average(tasks: Sequence[Floats], draws: int, level: float, seed: int) -> SeedIntervals:
    shapes = {(task.shape[0], task.shape[2]) for task in tasks}
    if len(shapes) != 1:
        raise ValueError(f"tasks have (seeds, K) {sorted(shapes)}; every task needs the same seeds and responses")
    if draws < 1 or not 0 < level < 1:
        raise ValueError(f"draws = {draws}, level = {level}: give at least one draw and a level between 0 and 1")
    centre = np.mean([task.mean(axis=(0, 1)) for task in tasks], axis=0)
    means = np.mean([seed_draws(task, draws, seed, stream) for stream, task in enumerate(tasks)], axis=0)
    problems = sum(task.shape[1] for task in tasks)
    found = intervals(centre, means, level, problems)
    return SeedIntervals(tuple(found), len(tasks[0]), problems)
