"""How far two sets of weights lie apart, and where (method.md section 5; equations 15 and 16)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.drift_check import check_models, check_taus
from broadreach.analysis.drift_files import StoredTensor
from broadreach.analysis.drift_largest import Largest, Place
from broadreach.analysis.drift_parts import TensorDrift, join, tensor_layer
from broadreach.analysis.drift_scan import BLOCK, scan, starting_bins
from broadreach.models.kinds import tensor_kind
from broadreach.types import UserError

TAUS = (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3)
"""The paper's thresholds (Easy setting)."""

EDGES = np.concatenate([[0.0], np.logspace(-9, 1, 61)])
"""Edges of the |delta| histogram: zero apart, then six bins a decade; larger values join the last bin."""

TOP = 100
PIECE = 1 << 20
"""Elements of each model in memory at once."""

Weights: TypeAlias = Mapping[str, StoredTensor | NDArray[Any]]
"""Tensors in memory, or on the disk (`open_weights`)."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The distance between two models, whole and in parts."""

    total: TensorDrift
    tensors: tuple[TensorDrift, ...]
    kinds: tuple[TensorDrift, ...]
    layers: tuple[TensorDrift, ...]
    taus: tuple[float, ...]
    histogram: NDArray[np.int64]
    """Elements per bin of `EDGES`; the first bin counts the unmoved ones."""
    top: tuple[Place, ...]
    """The places of the largest |delta|, largest first."""


def drift(
    base: Weights,
    other: Weights,
    taus: Sequence[float] = TAUS,
    third: Weights | None = None,
    *,
    top: int = TOP,
    progress: Callable[[int, int], None] | None = None,
) -> Drift:
    """Measure other - base, and its cosine with third - base, in float64; memory is bounded by one piece of a tensor.

    `taus` are absolute, positive and increasing. `progress` is told (elements done, elements in all). UserError when
    names or shapes differ (which tensor), a weight is not finite, or the taus make no sense.
    """
    check_taus(taus)
    check_models(base, other, third)
    edges = np.unique(np.concatenate([EDGES, np.asarray(taus, np.float64)]))
    largest, tensors = Largest(top), []
    counts = np.zeros(edges.size + 1, np.int64)
    total, done = sum(_size(tensor) for tensor in base.values()), 0
    for name in sorted(base):
        measured, found = _measure(name, (base, other, third), edges, taus, largest)
        tensors.append(measured)
        counts += found
        done += measured.size
        if progress is not None:
            progress(done, total)
    kinds, layers = {part.kind for part in tensors}, {part.layer for part in tensors}
    return Drift(
        total=join("model", "all", "all", tensors),
        tensors=tuple(tensors),
        kinds=tuple(join(kind, kind, "all", [t for t in tensors if t.kind == kind]) for kind in sorted(kinds)),
        layers=tuple(join(one, "all", one, [t for t in tensors if t.layer == one]) for one in sorted(layers)),
        taus=tuple(taus),
        histogram=_histogram(counts, edges),
        top=tuple(place for _, place in largest.kept),
    )


def _measure(
    name: str,
    models: tuple[Weights, Weights, Weights | None],
    edges: NDArray[np.float64],
    taus: Sequence[float],
    largest: Largest,
) -> tuple[TensorDrift, NDArray[np.int64]]:
    """One tensor, piece by piece, and its counts between `edges`."""
    tensors = [model[name] for model in models if model is not None]
    shape, kind, size = tuple(tensors[0].shape), tensor_kind(name), _size(tensors[0])
    counts, first = np.zeros(edges.size + 1, np.int64), starting_bins(edges)
    sums: list[NDArray[np.float64]] = []
    maximum, place = 0.0, 0
    places = np.empty(min(PIECE, max(size, 1)), np.int64)
    for start in range(0, size, PIECE):
        before, after, *more = (_read(tensor, start, min(size, start + PIECE)) for tensor in tensors)
        part = np.empty((-(-before.size // BLOCK), 5), np.float64)
        turn = more[0] if more else before[:0]
        found = scan(before, after, turn, edges, first, counts, largest.above, places, part)
        largest.offer(name, kind, shape, start, places[:found], before, after)
        if part[:, 4].max() > maximum:
            maximum, place = float(part[:, 4].max()), start + _peak(before, after, int(part[:, 4].argmax()) * BLOCK)
        sums.append(part[:, :4])
    squared, norm, dot, second = (math.fsum(column) for column in np.concatenate([*sums, np.zeros((1, 4))]).T)
    if not math.isfinite(squared + norm + second):
        raise UserError(f"tensor {name} has a weight that is not a finite number in one of the models")
    within = np.cumsum(counts)[np.searchsorted(edges, taus)] - counts[0]
    measured = TensorDrift(
        name=name,
        kind=kind,
        layer=tensor_layer(name),
        size=size,
        moved=size - int(counts[0]),
        within=tuple(int(count) for count in within),
        squared_change=squared,
        squared_base=norm,
        dot=dot,
        squared_other=second,
        maximum=maximum,
        place=(name, place),
    )
    return measured, counts


def _peak(before: NDArray[Any], after: NDArray[Any], start: int) -> int:
    """Where the largest change of the block from `start` is."""
    block = slice(start, start + BLOCK)
    return start + int(np.abs(after[block].astype(np.float64) - before[block]).argmax())


def _histogram(counts: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts between the finer `edges` put together into the bins of EDGES."""
    below = np.cumsum(counts)[np.searchsorted(edges, EDGES)]
    below[-1] = counts.sum()
    return np.diff(below, prepend=0)


def _size(tensor: StoredTensor | NDArray[Any]) -> int:
    return int(tensor.size)


def _read(tensor: StoredTensor | NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    if isinstance(tensor, StoredTensor):
        return tensor.read(start, stop)
    return np.ascontiguousarray(tensor).reshape(-1)[start:stop]
