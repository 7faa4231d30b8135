"""Kappa and correlations of one objective with intervals, pooled and within prompts (method.md section 7, Table 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_values import function_interval
from broadreach.evaluation.statistics import Interval
from broadreach.types import UserError

Floats = NDArray[np.float64]
Observations: TypeAlias = NDArray[np.float64]
"""[prompts, observations of a prompt (seeds x directions)]."""


@dataclass(frozen=True, slots=True)
class Couplings:
    """Table 13's columns; an undefined one (X+ does not vary) is nan."""

    corr_plus_base: Interval
    kappa_base: Interval
    corr_plus_minus: Interval
    kappa_pair: Interval
    within_kappa_base: Interval
    """Mean over prompts of Var(X+ - X0) over mean of Var(X+), both within a prompt."""
    within_kappa_pair: Interval
    observations: int


def couplings(plus: Observations, base: Observations, minus: Observations) -> Couplings:
    """From paired X+, X0, X- to kappas and correlations; variances have ddof 0, prompts are resampled.

    Pooled kappas put the variance between prompts into the denominator; the `within` ones do not. UserError when the
    shapes differ or there are fewer than 2 prompts.
    """
    if plus.ndim != 2 or not plus.shape == base.shape == minus.shape or len(plus) < 2:
        raise UserError(f"kappa: shapes {plus.shape}, {base.shape}, {minus.shape}; give at least 2 prompts, all alike")
    p, b, m = plus - plus.mean(), base - base.mean(), minus - minus.mean()
    return Couplings(
        corr_plus_base=_correlation(p, b),
        kappa_base=_pooled(p, b),
        corr_plus_minus=_correlation(p, m),
        kappa_pair=_pooled(p, m),
        within_kappa_base=_within(p, b),
        within_kappa_pair=_within(p, m),
        observations=plus.size,
    )


def _pooled(x: Observations, y: Observations) -> Interval:
    d = x - y
    columns = [v.mean(axis=1) for v in (d, d * d, x, x * x)]
    return function_interval(columns, lambda c: _ratio(c[:, 1] - c[:, 0] ** 2, c[:, 3] - c[:, 2] ** 2))


def _correlation(x: Observations, y: Observations) -> Interval:
    columns = [v.mean(axis=1) for v in (x, y, x * x, y * y, x * y)]

    def of(c: Floats) -> Floats:
        squared = (c[:, 2] - c[:, 0] ** 2) * (c[:, 3] - c[:, 1] ** 2)
        return _ratio(c[:, 4] - c[:, 0] * c[:, 1], np.sqrt(np.maximum(squared, 0.0)))

    return function_interval(columns, of)


def _within(x: Observations, y: Observations) -> Interval:
    return function_interval([(x - y).var(axis=1), x.var(axis=1)], lambda c: _ratio(c[:, 0], c[:, 1]))


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, nan where nothing varies (below what rounding leaves of a constant)."""
    return np.where(bottom > 1e-24, top / np.where(bottom > 1e-24, bottom, 1.0), np.nan)
