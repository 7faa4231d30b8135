"""Direction weights as exact integers (design.md section 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broadreach.noise.update import quantise
from broadreach.types import Update


def make_update(weights: NDArray[np.float64], alpha: float, anchor_decay: float = 0.0) -> Update | None:
    """`c_i = round(alpha * w_i / N * 2**K)` for weights [N]; None when every weight is zero."""
    quantised = quantise((alpha * weights / len(weights)).tolist())
    if quantised is None:
        return None
    coefficients, shift = quantised
    return Update(tuple(range(len(weights))), tuple(int(c) for c in coefficients), int(shift), anchor_decay)
