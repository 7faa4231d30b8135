"""From shaped rewards to one weight per noise direction (method.md section 2; equations 6, 7 and 43)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from broadreach.config import EsSettings
from broadreach.es.shaping import SHAPINGS
from broadreach.types import Member


def direction_weights(
    settings: EsSettings, members: Sequence[Member], rewards: Sequence[float], sigma: float
) -> NDArray[np.float64]:
    """Weight of each direction [N], so that the update is `alpha / N * sum_i weight_i eps_i`.

    Shaped rewards weigh as in (7), where alpha absorbs 1/sigma; raw ones (`shaping = "none"`) are divided by sigma
    as in (6). A two-point direction weighs half the difference of its two members (43).
    """
    shaped = SHAPINGS[settings.shaping](rewards)
    if settings.shaping == "none":
        shaped = shaped / sigma
    weights = np.zeros(settings.population, dtype=np.float64)
    for member, value in zip(members, shaped, strict=True):
        weights[member.direction] += member.sign * value
    return weights / 2 if settings.estimator == "two_point" else weights
