"""Null models: the same run with rewards that know nothing of the members, predicted from a sample of coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.drift_check import check_taus
from broadreach.analysis.drift_files import StoredTensor
from broadreach.analysis.drift_parts import tensor_layer
from broadreach.analysis.null_maxima import OCTAVES, octave, probes
from broadreach.analysis.null_sample import SIZE, Floats, Sample, draw_sample
from broadreach.analysis.null_walk import NullRun, round_to, walk
from broadreach.models.kinds import tensor_kind
from broadreach.types import UserError

FIXED = 3
"""Columns before those of the taus: squared change, squared base, moved."""


@dataclass(frozen=True, slots=True, eq=False)
class NullTally:
    """What noise-only runs of one arithmetic did, summed up by tensor."""

    precision: str
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    layers: tuple[str, ...]
    sizes: NDArray[np.int64]
    taus: tuple[float, ...]
    sums: Floats
    """Estimated sums over each tensor [seeds, tensors, groups, 3 + taus]: change^2, base^2, moved, within each tau."""
    octave_sizes: Floats
    """Estimated number of coordinates by octave of |weight| [tensors, octaves], mean over the seeds."""
    octave_deviation: Floats
    """Root mean squared change (before any rounding to save) of weights of each octave [octaves]; 0: none sampled."""
    deviation: float
    """Closed form of a coordinate's standard deviation in exact arithmetic."""
    sampled: int
    """Coordinates in one seed's sample."""

    @property
    def size(self) -> int:
        """Weights of the model."""
        return int(self.sizes.sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Seed:
    """One seed's sample, and its changes in one arithmetic."""

    sample: Sample
    base: NDArray[np.float32]
    change: Floats
    octave_sizes: Floats
    octave_squares: Floats


def simulate(
    tensors: Mapping[str, StoredTensor | NDArray[Any]],
    runs: Sequence[NullRun],
    precisions: Sequence[str],
    dtype: str,
    taus: Sequence[float],
    *,
    size: int = SIZE,
    first_seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, NullTally]:
    """Walk a fresh sample of coordinates through each of `runs` (one a seed), in every arithmetic.

    `tensors` are the base weights, taken in `dtype`, the model's type. `progress` is told (seeds done, seeds).
    UserError for taus, precisions or models that make no sense.
    """
    check_taus(taus)
    if not runs or not precisions:
        raise UserError("a null model needs at least one seed and one precision")
    seeds: dict[str, list[_Seed]] = {name: [] for name in precisions}
    for number, run in enumerate(runs):
        for name, found in _one_seed(tensors, run, precisions, dtype, size, first_seed + number).items():
            seeds[name].append(found)
        if progress is not None:
            progress(number + 1, len(runs))
    deviation = float(np.mean([run.deviation for run in runs]))
    return {name: _tally(name, found, taus, deviation) for name, found in seeds.items()}


def _one_seed(
    tensors: Mapping[str, StoredTensor | NDArray[Any]],
    run: NullRun,
    precisions: Sequence[str],
    dtype: str,
    size: int,
    seed: int,
) -> dict[str, _Seed]:
    sample = draw_sample(tensors, size, seed)
    base = round_to(sample.values, dtype)
    sizes = _octave_sizes(sample, base)
    extra, of_octave = probes(np.flatnonzero(sizes.sum(axis=0)), seed)
    start = np.concatenate([base, round_to(extra, dtype)])
    walked: dict[bool, NDArray[np.float32]] = {}
    found = {}
    for name in precisions:
        paper = name == "paper"
        if paper not in walked:
            walked[paper] = walk(start, run, name, dtype, seed ^ 0x6E756C6C)
        moved = walked[paper]
        free = np.square(moved.astype(np.float64) - start)
        squares = np.bincount(of_octave, free[base.size :], minlength=OCTAVES) / np.maximum(
            np.bincount(of_octave, minlength=OCTAVES), 1
        )
        if not paper:  # the change does not depend on the weight: all coordinates tell its size
            squares = np.where(squares > 0, free.mean(), 0.0)
        end = round_to(moved, dtype) if name == "saved" else moved
        change = end[: base.size].astype(np.float64) - base
        found[name] = _Seed(sample, base, change, sizes, squares)
    return found


def _tally(precision: str, seeds: Sequence[_Seed], taus: Sequence[float], deviation: float) -> NullTally:
    sample = seeds[0].sample
    return NullTally(
        precision=precision,
        names=sample.names,
        kinds=tuple(map(tensor_kind, sample.names)),
        layers=tuple(map(tensor_layer, sample.names)),
        sizes=sample.sizes,
        taus=tuple(taus),
        sums=np.stack([_sums(seed, taus) for seed in seeds]),
        octave_sizes=np.mean([seed.octave_sizes for seed in seeds], axis=0),
        octave_deviation=np.sqrt(_mean_of_positive([seed.octave_squares for seed in seeds])),
        deviation=deviation,
        sampled=sample.values.size,
    )


def _sums(seed: _Seed, taus: Sequence[float]) -> Floats:
    """[tensors, groups, 3 + taus]"""
    size = np.abs(seed.change)
    moved = size > 0
    columns = [np.square(seed.change), np.square(seed.base.astype(np.float64)), moved.astype(np.float64)]
    columns += [(moved & (size <= tau)).astype(np.float64) for tau in taus]
    return np.stack([seed.sample.per_cell(column) for column in columns], axis=-1)


def _octave_sizes(sample: Sample, base: NDArray[np.float32]) -> Floats:
    """Coordinates by tensor and octave of |weight|: [tensors, octaves]."""
    shape = (len(sample.names), OCTAVES)
    key = sample.tensor * OCTAVES + octave(base)
    counts: Floats = np.bincount(key, sample.weight, minlength=shape[0] * shape[1]).astype(np.float64)
    return counts.reshape(shape)


def _mean_of_positive(rows: Sequence[Floats]) -> Floats:
    """Mean over the seeds that have met an octave."""
    table = np.stack(rows)
    return table.sum(axis=0) / np.maximum((table > 0).sum(axis=0), 1)
