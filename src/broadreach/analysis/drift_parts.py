"""The change of one tensor, and of what tensors add up to: kinds, layers, the model."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|layer)\.(\d+)\.")
OUTSIDE = "outside"
"""The layer of embeddings, the head and the last norm."""


@dataclass(frozen=True, slots=True)
class TensorDrift:
    """The change of one tensor, or of all tensors of a kind or layer, or of the whole model."""

    name: str
    kind: str
    layer: str
    size: int
    moved: int
    """Elements that differ."""
    within: tuple[int, ...]
    """Moved elements with |delta| <= tau, for every tau."""
    squared_change: float
    squared_base: float
    dot: float
    """Of this change with that of a third model; 0 without one."""
    squared_other: float
    """Of the third model's change; 0 without one."""
    maximum: float
    place: tuple[str, int]
    """Tensor and flat index of the largest |delta|."""

    @property
    def relative(self) -> float:
        """||delta|| / ||base|| (equation 15); nan when the base is all zero."""
        return math.sqrt(self.squared_change / self.squared_base) if self.squared_base else math.nan

    @property
    def rms(self) -> float:
        """Root of the mean squared change of a coordinate; nan for an empty tensor."""
        return math.sqrt(self.squared_change / self.size) if self.size else math.nan

    @property
    def sparsity(self) -> tuple[float, ...]:
        """Share of *moved* elements within each tau (equation 16); nan when nothing moved."""
        return tuple(count / self.moved if self.moved else math.nan for count in self.within)

    @property
    def cosine(self) -> float:
        """Between this change and the third model's; nan when one of them is zero."""
        norms = math.sqrt(self.squared_change) * math.sqrt(self.squared_other)
        return max(-1.0, min(1.0, self.dot / norms)) if norms else math.nan


def tensor_layer(name: str) -> str:
    """`layer 007` (so that names sort as numbers), or `outside`."""
    found = _LAYER.search(name)
    return f"layer {int(found.group(1)):03d}" if found else OUTSIDE


def join(name: str, kind: str, layer: str, parts: Sequence[TensorDrift]) -> TensorDrift:
    """Several tensors as one; squares are summed without rounding in between."""
    largest = max(parts, key=lambda part: part.maximum)
    return TensorDrift(
        name=name,
        kind=kind,
        layer=layer,
        size=sum(part.size for part in parts),
        moved=sum(part.moved for part in parts),
        within=tuple(map(sum, zip(*(part.within for part in parts), strict=True))),
        squared_change=math.fsum(part.squared_change for part in parts),
        squared_base=math.fsum(part.squared_base for part in parts),
        dot=math.fsum(part.dot for part in parts),
        squared_other=math.fsum(part.squared_other for part in parts),
        maximum=largest.maximum,
        place=largest.place,
    )
