"""Norms and distances of whole models, summed in float64, one slice in memory at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from broadreach.types import Centre

_SLICE = 1 << 20


def l2_norm(centre: Centre) -> float:
    """`||theta||` over all tensors."""
    total = 0.0
    for array in centre.values():
        flat = array.reshape(-1)
        for start in range(0, flat.size, _SLICE):
            part = flat[start : start + _SLICE].astype(np.float64)
            total += float(part @ part)
    return math.sqrt(total)


def relative_l2(centre: Centre, base: Iterable[tuple[str, NDArray[np.float32]]]) -> float:
    """`||theta - theta0|| / ||theta0||` (method.md section 5, equation 15); `base` may be a stream of tensors."""
    moved = norm = 0.0
    for name, start in base:
        old, new = start.reshape(-1), centre[name].reshape(-1)
        for first in range(0, old.size, _SLICE):
            before = old[first : first + _SLICE].astype(np.float64)
            step = new[first : first + _SLICE] - before
            moved += float(step @ step)
            norm += float(before @ before)
    return math.sqrt(moved / norm) if norm else 0.0
