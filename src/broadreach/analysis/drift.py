"""How far two sets of weights lie apart, and where (method.md section 5; equations 15 and 16)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.models.kinds import tensor_kind
from broadreach.types import UserError

TAUS = (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3)
"""The paper's thresholds (Easy setting)."""

EDGES = np.concatenate([[0.0], np.logspace(-9, 1, 61)])
"""Edges of the |delta| histogram: zero apart, then six bins a decade; larger values join the last bin."""

Weights: TypeAlias = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class TensorDrift:
    """The change of one tensor, or of all tensors of a kind, or of the whole model."""

    name: str
    kind: str
    size: int
    moved: int
    """Elements that differ."""
    within: tuple[int, ...]
    """Moved elements with |delta| <= tau, for every tau."""
    squared_change: float
    squared_base: float
    maximum: float
    place: tuple[str, int]
    """Tensor and flat index of the largest |delta|."""

    @property
    def relative(self) -> float:
        """||delta|| / ||base|| (equation 15); nan when the base is all zero."""
        return math.sqrt(self.squared_change / self.squared_base) if self.squared_base else math.nan

    @property
    def sparsity(self) -> tuple[float, ...]:
        """Share of *moved* elements within each tau (equation 16); nan when nothing moved."""
        return tuple(count / self.moved if self.moved else math.nan for count in self.within)


@dataclass(frozen=True, slots=True)
class Drift:
    """The distance between two models, whole and in parts."""

    total: TensorDrift
    tensors: tuple[TensorDrift, ...]
    kinds: tuple[TensorDrift, ...]
    taus: tuple[float, ...]
    histogram: NDArray[np.int64]
    """Elements per bin of `EDGES`; the first bin counts the unmoved ones."""


def drift(base: Weights, other: Weights, taus: Sequence[float] = TAUS) -> Drift:
    """Measure other - base in float64, one tensor at a time (mappings that load on access stay lazy).

    `taus` are absolute, positive and increasing. UserError when names or shapes differ (which tensor), or the
    taus make no sense.
    """
    _check(base, other, taus)
    histogram = np.zeros(len(EDGES), dtype=np.int64)
    tensors: list[TensorDrift] = []
    for name in sorted(base):
        before, after = np.asarray(base[name]), np.asarray(other[name])
        if before.shape != after.shape:
            raise UserError(f"tensor {name} has shape {before.shape} in one model and {after.shape} in the other")
        change = np.abs(after.astype(np.float64) - before.astype(np.float64)).ravel()
        histogram += _histogram(change)
        tensors.append(_measure(name, before, change, taus))
    kinds = sorted({tensor.kind for tensor in tensors})
    return Drift(
        total=_join("model", "all", tensors),
        tensors=tuple(tensors),
        kinds=tuple(_join(kind, kind, [t for t in tensors if t.kind == kind]) for kind in kinds),
        taus=tuple(taus),
        histogram=histogram,
    )


def _measure(name: str, before: NDArray[Any], change: NDArray[np.float64], taus: Sequence[float]) -> TensorDrift:
    moved = change > 0
    place = int(change.argmax()) if change.size else 0
    return TensorDrift(
        name=name,
        kind=tensor_kind(name),
        size=change.size,
        moved=int(moved.sum()),
        within=tuple(int((moved & (change <= tau)).sum()) for tau in taus),
        squared_change=float(np.square(change).sum()),
        squared_base=float(np.square(before.astype(np.float64)).sum()),
        maximum=float(change[place]) if change.size else 0.0,
        place=(name, place),
    )


def _join(name: str, kind: str, parts: Sequence[TensorDrift]) -> TensorDrift:
    largest = max(parts, key=lambda part: part.maximum)
    return TensorDrift(
        name=name,
        kind=kind,
        size=sum(part.size for part in parts),
        moved=sum(part.moved for part in parts),
        within=tuple(map(sum, zip(*(part.within for part in parts), strict=True))),
        squared_change=math.fsum(part.squared_change for part in parts),
        squared_base=math.fsum(part.squared_base for part in parts),
        maximum=largest.maximum,
        place=largest.place,
    )


def _histogram(change: NDArray[np.float64]) -> NDArray[np.int64]:
    bins = np.searchsorted(EDGES, change, side="left")
    return np.bincount(np.minimum(bins, len(EDGES) - 1), minlength=len(EDGES)).astype(np.int64)


def _check(base: Iterable[str], other: Iterable[str], taus: Sequence[float]) -> None:
    differing = sorted(set(base) ^ set(other))
    if differing:
        raise UserError(
            f"only one of the models has {differing[0]} ({len(differing)} such tensors); compare like with like"
        )
    if not set(base):
        raise UserError("the models have no tensors: nothing to compare")
    if any(not tau > 0 for tau in taus) or any(a >= b for a, b in pairwise(taus)):
        raise UserError(f"taus {list(taus)} must be positive and increasing")
