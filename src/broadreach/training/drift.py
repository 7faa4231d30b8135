"""How far the weights have moved from the base while a run goes on (method.md section 5, equation 15)."""

from __future__ import annotations

from pathlib import Path

from broadreach.models.distance import relative_l2
from broadreach.models.stream import stream_centre
from broadreach.models.weights import load_centre
from broadreach.training.restore import SMALL_MODEL
from broadreach.types import Centre


class DriftMeter:
    """Relative L2 distance to the base, from memory for small models, from the model's files for large ones."""

    def __init__(self, base_dir: Path, base: Centre | None) -> None:
        self.base_dir = base_dir
        self.base = base

    def relative(self, centre: Centre, due: bool) -> float | None:
        """`||theta - theta0|| / ||theta0||`; None for a large model unless a measurement is `due`."""
        if self.base is not None:
            return relative_l2(centre, self.base.items())
        return relative_l2(centre, stream_centre(self.base_dir, frozenset(centre))) if due else None


def drift_meter(start_dir: Path, start: Centre | None, origin: Path | None) -> DriftMeter:
    """Measures from where the run starts; in a later stage of a composition from the base of the whole run, `origin`.

    `start` are the weights in `start_dir`, where the method holds a copy of them anyway.
    """
    if origin is None:
        return DriftMeter(start_dir, start)
    small = start is not None and sum(array.size for array in start.values()) <= SMALL_MODEL
    return DriftMeter(origin, load_centre(origin) if small else None)
