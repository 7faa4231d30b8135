"""The largest changes of a model, kept while it streams by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Place:
    """One coordinate that changed much."""

    tensor: str
    kind: str
    index: tuple[int, ...]
    """In the tensor's own shape."""
    base: float
    value: float

    @property
    def change(self) -> float:
        """After minus before."""
        return self.value - self.base


class Largest:
    """The `count` places of largest |delta| seen so far; among equal ones those seen first."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: list[tuple[float, Place]] = []

    @property
    def above(self) -> float:
        """Only changes larger than this can still enter."""
        return self.kept[-1][0] if len(self.kept) == self.count else 0.0

    def offer(
        self,
        tensor: str,
        kind: str,
        shape: tuple[int, ...],
        start: int,
        places: NDArray[np.int64],
        base: NDArray[Any],
        other: NDArray[Any],
    ) -> None:
        """Take in the elements at `places` of a piece that begins at flat index `start` of `tensor`."""
        before, after = base[places].astype(np.float64), other[places].astype(np.float64)
        order = np.argsort(-np.abs(after - before), kind="stable")[: self.count]
        for at in order:
            index = tuple(int(i) for i in np.unravel_index(start + int(places[at]), shape)) if shape else ()
            place = Place(tensor, kind, index, float(before[at]), float(after[at]))
            self.kept.append((abs(place.change), place))
        self.kept.sort(key=lambda entry: -entry[0])
        del self.kept[self.count :]
