"""Reward shaping: what one population's rewards become before they weigh the directions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broadreach.types import UserError

Shaped = NDArray[np.float64]


def z_score(rewards: Sequence[float]) -> Shaped:
    """`(R_i - mean R) / (std R + 1e-8)` with the population standard deviation (method.md section 2.1, step 4)."""
    values = np.asarray(rewards, dtype=np.float64)
    centred = values - math.fsum(rewards) / len(rewards)
    return centred / (_std(centred) + 1e-8)


def centred_ranks(rewards: Sequence[float]) -> Shaped:
    """Ranks scaled to [-0.5, 0.5], equal rewards sharing the mean of their ranks (Salimans et al. 2017)."""
    values = np.asarray(rewards, dtype=np.float64)
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return (below + (equal - 1) / 2) / (len(values) - 1) - 0.5


def raw(rewards: Sequence[float]) -> Shaped:
    """The rewards themselves, for the estimator of equation (6)."""
    return np.asarray(rewards, dtype=np.float64)


SHAPINGS = {"z_score": z_score, "centred_ranks": centred_ranks, "none": raw}


def spread(rewards: Sequence[float]) -> float:
    """Population standard deviation (ddof 0); UserError when a reward is not finite."""
    for position, reward in enumerate(rewards):
        if not math.isfinite(reward):
            raise UserError(f"member {position} has reward {reward}: rewards must be finite numbers")
    values = np.asarray(rewards, dtype=np.float64)
    if (values == values[0]).all():
        return 0.0
    return _std(values - math.fsum(rewards) / len(rewards))


def _std(centred: Shaped) -> float:
    return math.sqrt(math.fsum(centred * centred) / len(centred))
