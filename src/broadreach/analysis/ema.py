"""Smoothed training curves: debiased exponential mean, adequate populations, noise band (Table 6, Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

WEIGHT = 0.99
TOLERANCE = 0.01
WINDOW = 21


@dataclass(frozen=True, slots=True)
class Adequacy:
    """How one population compares with the reference population over training."""

    adequate: NDArray[np.bool_]
    """Per update: smoothed reward at most `tolerance` below the reference."""
    gap: Floats
    """Smoothed reward minus the reference's."""

    @property
    def share(self) -> float:
        """Share of updates that are adequate."""
        return float(self.adequate.mean())

    @property
    def first(self) -> int | None:
        """First update (1-based) from which all later ones are adequate; None when the last one is not."""
        bad = np.flatnonzero(~self.adequate)
        if bad.size == 0:
            return 1
        return None if bad[-1] == len(self.adequate) - 1 else int(bad[-1]) + 2


def debiased_ema(values: ArrayLike, weight: float = WEIGHT) -> Floats:
    """s_t / (1 - weight^t) with s_t = weight s_(t-1) + (1 - weight) x_t and s_0 = 0: [updates] -> [updates].

    The first value is x_1, and a constant stays what it is. ValueError when empty, not finite, or weight outside 0..1.
    """
    series = _series(values)
    if not 0 <= weight < 1:
        raise ValueError(f"smoothing weight {weight}: give a share from 0 to below 1, for example {WEIGHT}")
    smoothed = np.empty_like(series)
    state = total = 0.0
    for position, value in enumerate(series):
        state = weight * state + (1 - weight) * value
        total = weight * total + (1 - weight)
        smoothed[position] = state / total
    return smoothed


def band(values: ArrayLike, weight: float = WEIGHT, window: int = WINDOW) -> Floats:
    """Local standard deviation (ddof 0) of raw minus smoothed over `window` updates around each: Figure 5's band.

    At both ends the window is what there is of it. ValueError for a window below 2.
    """
    if window < 2:
        raise ValueError(f"band window {window}: give at least 2 updates")
    series = _series(values)
    rest = series - debiased_ema(series, weight)
    half = window // 2
    return np.array([rest[max(0, at - half) : at + half + 1].std() for at in range(len(rest))])


def adequate(
    curves: Mapping[int, ArrayLike],
    reference: int | None = None,
    *,
    tolerance: float = TOLERANCE,
    weight: float = WEIGHT,
) -> dict[int, Adequacy]:
    """Table 6's criterion: population -> is its smoothed mean reward within `tolerance` of the reference population's?

    `curves`: population -> mean reward per update; curves are compared over the updates that both have. The reference
    is the largest population unless named. ValueError when it is missing.
    """
    if not curves:
        raise ValueError("adequate: no curve; give the mean rewards of at least one population")
    chosen = max(curves) if reference is None else reference
    if chosen not in curves:
        raise ValueError(f"adequate: no curve of the reference population {chosen}; there are {sorted(curves)}")
    smooth = {population: debiased_ema(values, weight) for population, values in curves.items()}
    found = {}
    for population, curve in sorted(smooth.items()):
        shared = min(len(curve), len(smooth[chosen]))
        gap = curve[:shared] - smooth[chosen][:shared]
        found[population] = Adequacy(gap >= -tolerance - 1e-12, gap)
    return found


def _series(values: ArrayLike) -> Floats:
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or series.size == 0 or not np.isfinite(series).all():
        raise ValueError(f"a curve has shape {series.shape}; give one finite number per update, and at least one")
    return series
