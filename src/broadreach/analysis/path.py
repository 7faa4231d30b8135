"""Weights on the line through two models: base + t * (final - base)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from broadreach.analysis.drift_check import check_models
from broadreach.types import Centre, UserError

POINTS = (-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


def check_points(points: Sequence[float]) -> None:
    """UserError unless the points are finite and all different."""
    if not points or any(not math.isfinite(point) for point in points) or len(set(points)) < len(points):
        raise UserError(f"points {list(points)} must be different finite numbers; 0 is the start, 1 the end")


def interpolate(start: Centre, end: Centre, t: float) -> Centre:
    """float32(start + t * (end - start)), computed in float64; 0 gives `start` and 1 gives `end`, bit for bit.

    UserError when names or shapes differ (which tensor).
    """
    check_models(start, end)
    if t in (0.0, 1.0):
        return {name: array.copy() for name, array in (end if t else start).items()}
    return {
        name: (array + t * (end[name].astype(np.float64) - array)).astype(np.float32) for name, array in start.items()
    }
