"""From counts of successes to diversity: the multi-sample jackknife, and a permutation null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.theory import js_rates
from broadreach.types import UserError

Floats = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""Rates [..., members] -> values [...]."""

LEAST_SAMPLES = 4
"""Fewer responses a member leave the bias of the corrected entropy too large."""
PERMUTATIONS = 1_000
_CELLS = 2_000_000


@dataclass(frozen=True, slots=True)
class PermutationNull:
    """What equal members would show: responses dealt to the members at random within each prompt."""

    mean: float
    """Mean of the statistic over prompts and permutations."""
    high: float
    """95th percentile over permutations."""
    p_value: float
    """(1 + permutations at or above the observed value) / (1 + permutations)."""
    draws: int


def check_samples(samples: int) -> None:
    """UserError when there are too few responses a member for the bias correction."""
    if samples < LEAST_SAMPLES:
        raise UserError(
            f"--samples {samples}: the bias correction of JS_succ needs at least {LEAST_SAMPLES} responses of each "
            f"member to each prompt; give --samples {LEAST_SAMPLES} or more"
        )


def jackknifed(statistic: Statistic, counts: Counts, samples: int) -> Floats:
    """`statistic` of the members' rates with its bias of order 1/m removed: counts [prompts, members] -> [prompts].

    Multi-sample jackknife: T - (m - 1) sum_i (mean_j T_(-ij) - T), each member losing one response j at a time. An
    estimate that is linear in every member's rate (P_pop) stays as it is. ValueError for counts outside 0..m.
    """
    if samples < 2 or not ((counts >= 0) & (counts <= samples)).all():
        raise ValueError(f"jackknife: counts must lie in 0 to m = {samples}, and m must be at least 2")
    members = counts.shape[1]
    step = max(1, _CELLS // (members * members))
    parts = [_jackknifed(statistic, counts[at : at + step], samples) for at in range(0, len(counts), step)]
    return np.concatenate(parts)


def _jackknifed(statistic: Statistic, counts: Counts, samples: int) -> Floats:
    rates = counts / samples
    whole = statistic(rates)
    members = counts.shape[1]
    diagonal = np.eye(members, dtype=bool)
    without = {}
    for lost in (0, 1):
        rest = (counts - lost) / (samples - 1)
        replaced = np.where(diagonal, np.clip(rest, 0.0, 1.0)[:, :, None], rates[:, None, :])
        without[lost] = statistic(replaced)
    mean = rates * without[1] + (1 - rates) * without[0]
    return whole - (samples - 1) * (mean - whole[:, None]).sum(axis=1)


def corrected_js(counts: Counts, samples: int) -> Floats:
    """JS_succ of each prompt with the bias of m samples removed; below zero where chance made it so. [prompts]"""
    return jackknifed(js_rates, counts, samples)


def permutation_null(
    statistic: Statistic, counts: Counts, samples: int, *, draws: int = PERMUTATIONS, seed: int = 0
) -> PermutationNull:
    """Deal each prompt's responses to the members at random, many times, and compare the mean over prompts."""
    generator = np.random.default_rng(seed)
    prompts, members = counts.shape
    totals = np.zeros(draws)
    for row in counts:
        dealt = generator.multivariate_hypergeometric([samples] * members, int(row.sum()), size=draws)
        totals += statistic(dealt / samples)
    null = totals / prompts
    observed = float(statistic(counts / samples).mean())
    above = int((null >= observed - 1e-12).sum())
    return PermutationNull(float(null.mean()), float(np.quantile(null, 0.95)), (1 + above) / (1 + draws), draws)
