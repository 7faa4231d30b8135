"""Percentile bootstrap over problems: intervals, paired differences, several seeds (verifiers.md, section 0)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

DRAWS = 10_000
LEVEL = 0.95
FEW_PROBLEMS = 100
_CELLS = 4_000_000
"""Resampled indices held at once; bounds the memory, and does not change the draws."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval."""

    value: float
    low: float
    high: float
    level: float
    n: int
    """Problems behind it: what the bootstrap resamples."""

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above zero."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval lies below zero."""
        return self.high < 0


def bootstrap(values: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Interval:
    """Interval of a mean by resampling problems: one value per problem, [problems] -> Interval.

    Percentile bootstrap with its own `numpy.random.Generator(seed)`. ValueError when empty, not finite, or when
    `draws` or `level` make no sense.
    """
    rows = _matrix(values, "bootstrap", ndim=1)[:, None]
    return bootstrap_columns(rows, draws=draws, level=level, seed=seed)[0]


def bootstrap_columns(values: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> list[Interval]:
    """Intervals of column means, all columns under the same draws: [problems, columns] -> one Interval a column."""
    rows = _matrix(values, "bootstrap_columns", ndim=2)
    _check(draws, level)
    means = np.concatenate([counts @ rows for counts in _resamples(len(rows), draws, seed)]) / len(rows)
    return intervals(rows.mean(axis=0), means, level, len(rows))


def paired_bootstrap(
    a: ArrayLike, b: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Interval:
    """Interval of the mean per-problem difference a - b on the same problems: [problems] each -> Interval.

    ValueError when the shapes differ: align both to the same problem ids first.
    """
    return bootstrap(_difference(a, b), draws=draws, level=level, seed=seed)


def paired_bootstrap_columns(
    a: ArrayLike, b: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> list[Interval]:
    """As `paired_bootstrap`, for every column of two [problems, columns] matrices, under the same draws."""
    return bootstrap_columns(_difference(a, b), draws=draws, level=level, seed=seed)


def bootstrap_seeds(values: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Interval:
    """Interval over training seeds *and* problems: [seeds, problems] -> Interval of the mean over both.

    As `bootstrap_seeds_columns` with one column. With one seed this is `bootstrap`, and says nothing about seeds.
    """
    table = _matrix(values, "bootstrap_seeds", ndim=2)
    return bootstrap_seeds_columns(table[:, :, None], draws=draws, level=level, seed=seed)[0]


def bootstrap_seeds_columns(
    values: ArrayLike, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> list[Interval]:
    """Intervals over seeds and problems: [seeds, problems, columns] -> one Interval a column, under the same draws.

    Every draw resamples the seeds (outer level) and, once for all of them, the problems: the same test problems
    stand under every seed, so a problem's difficulty is shared and must not be averaged away. ValueError as
    `bootstrap`.
    """
    table = _matrix(values, "bootstrap_seeds_columns", ndim=3)
    _check(draws, level)
    return intervals(table.mean(axis=(0, 1)), seed_draws(table, draws, seed), level, table.shape[1])


def seed_draws(table: Floats, draws: int, seed: int, stream: int = 0) -> Floats:
    """The resampled means behind `bootstrap_seeds_columns`: [seeds, problems, columns] -> [draws, columns].

    Calls with one `seed` see the same problems resampled (one set of problems a `stream`), and, for the same number
    of seeds, the same seeds: so two methods, or two tasks, can be put together draw by draw.
    """
    seeds, problems, columns = table.shape
    wide = table.transpose(1, 0, 2).reshape(problems, seeds * columns)
    parts = [counts @ wide for counts in _resamples(problems, draws, [seed, 1 + stream] if stream else seed)]
    per_seed = (np.concatenate(parts) / problems).reshape(draws, seeds, columns)
    picks = np.random.default_rng([seed, 1]).integers(0, seeds, size=(draws, seeds))
    return np.take_along_axis(per_seed, picks[:, :, None], axis=1).mean(axis=1)


def small_sample_warning(n: int) -> str | None:
    """One line for readers when a set has fewer than 100 problems; None otherwise."""
    if n >= FEW_PROBLEMS:
        return None
    widest = 98 / np.sqrt(n)
    return f"only {n} problems: an interval can be as wide as ±{widest:.0f} points; read differences with care"


def _resamples(n: int, draws: int, seed: int | list[int]) -> Iterator[Floats]:
    """How often each of n problems is drawn, [some draws, n] at a time, `draws` rows in all."""
    generator = np.random.default_rng(seed)
    step = max(1, _CELLS // n)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        picks = generator.integers(0, n, size=(size, n))
        picks += np.arange(size)[:, None] * n
        yield np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def intervals(centres: Floats, means: Floats, level: float, n: int) -> list[Interval]:
    """Percentile intervals of columns: estimates [columns] and their draws [draws, columns]."""
    tail = (1 - level) / 2
    lows, highs = np.quantile(means, [tail, 1 - tail], axis=0)
    return [
        Interval(float(centre), float(low), float(high), level, n)
        for centre, low, high in zip(centres, lows, highs, strict=True)
    ]


def _difference(a: ArrayLike, b: ArrayLike) -> Floats:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"paired bootstrap: shapes {first.shape} and {second.shape}; align both to the same problems")
    return first - second


def _matrix(values: ArrayLike, who: str, ndim: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or array.size == 0:
        raise ValueError(f"{who}: values have shape {array.shape}; give {ndim} dimensions and at least one problem")
    if not np.isfinite(array).all():
        raise ValueError(f"{who}: a value is not a finite number; every problem needs one")
    return array


def _check(draws: int, level: float) -> None:
    if draws < 1:
        raise ValueError(f"draws = {draws}: give at least 1 ({DRAWS} by default)")
    if not 0 < level < 1:
        raise ValueError(f"level = {level}: give a share between 0 and 1, for example 0.95")
