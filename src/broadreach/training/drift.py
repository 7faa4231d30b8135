"""How far the weights have moved from the base while a run goes on (method.md section 5, equation 15)."""

from __future__ import annotations

from pathlib import Path

from broadreach.models.distance import relative_l2
from broadreach.models.stream import stream_centre
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
        return relative_l2(centre, stream_centre(self.model_dir, frozenset(centre))) if due else None
