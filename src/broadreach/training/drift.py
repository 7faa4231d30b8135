"""How far the weights have moved from the base while a run goes on (method.md section 5, equation 15)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broadreach.models.weights import stream_centre
from broadreach.types import Centre


class DriftMeter:
    """Relative L2 distance to the base, from memory for small models, from the model's files for large ones."""

    def __init__(self, model_dir: Path, base: Centre | None) -> None:
        self.model_dir = model_dir
        self.base = base

    def relative(self, centre: Centre, due: bool) -> float | None:
        """`||theta - theta0|| / ||theta0||`; None for a large model unless a measurement is `due`."""
        if self.base is not None:
            return relative_l2(centre, self.base.items())
        return relative_l2(centre, stream_centre(self.model_dir)) if due else None


def relative_l2(centre: Centre, base: Iterable[tuple[str, NDArray[np.float32]]]) -> float:
    """Relative L2 distance over all tensors, summed in float64, one tensor in memory at a time."""
    moved = norm = 0.0
    for name, start in base:
        for chunk in range(0, start.size, 1 << 20):
            old = start.reshape(-1)[chunk : chunk + (1 << 20)].astype(np.float64)
            step = centre[name].reshape(-1)[chunk : chunk + (1 << 20)] - old
            moved += float(step @ step)
            norm += float(old @ old)
    return math.sqrt(moved / norm) if norm else 0.0
