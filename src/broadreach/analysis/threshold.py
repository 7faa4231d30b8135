"""Thresholded updates (Figure 4, Tables 11 and 12) and controls that remove as many, or as much, elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.types import Centre, UserError

CONTROLS = ("threshold", "random-count", "random-energy", "keep-smallest")
"""Reset 0 < |d| <= tau (the paper); as many random moved coordinates; random ones until as much energy is gone; as
many of the largest."""
_BINS = 1 << 16

Keys = Callable[[str, NDArray[np.float64]], NDArray[np.uint64]]
"""The order in which coordinates are removed: (tensor, changes) -> keys, small ones first."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out of an update."""

    moved: int
    """Coordinates that the whole update moves."""
    coordinates: int
    energy: float
    """Share of the squared L2 norm of the update that is gone."""

    @property
    def share(self) -> float:
        """Share of the moved coordinates that is gone: s_tau for `threshold`; nan when nothing moved."""
        return self.coordinates / self.moved if self.moved else math.nan


@dataclass(frozen=True, slots=True)
class _Totals:
    moved: int
    within: int
    energy: float
    energy_within: float


def thresholded(base: Centre, final: Centre, tau: float, control: str, seed: int = 0) -> tuple[Centre, Removed]:
    """The weights `final` with part of the update reset to `base`, and what was reset; inputs are left alone.

    Ties and random orders are settled by `seed` and the tensors' names, not by memory or threads. UserError for an
    unknown control, or a tau that is not positive.
    """
    if control not in CONTROLS:
        raise UserError(f"control {control!r} is none of {', '.join(CONTROLS)}")
    if not 0 < tau < math.inf:
        raise UserError(f"taus must be positive and increasing, got {tau}")
    totals = _totals(base, final, tau)
    if control == "threshold":
        kept = {name: _reset(base[name], final[name], np.abs(d) <= tau) for name, d in _changes(base, final)}
    else:
        keys: Keys = _by_size if control == "keep-smallest" else _random(seed)
        by_energy = control == "random-energy"
        target = totals.energy_within if by_energy else float(totals.within)
        chosen = _chosen(base, final, keys, by_energy, target)
        kept = {name: _reset(base[name], final[name], chosen[name]) for name in base}
    removed = energy = 0.0
    for name, change in _changes(base, final):
        gone = (change != 0) & (kept[name] == base[name])
        removed += int(gone.sum())
        energy += float(np.square(change[gone]).sum())
    return kept, Removed(totals.moved, int(removed), energy / totals.energy if totals.energy else math.nan)


def _changes(base: Centre, final: Centre) -> Iterator[tuple[str, NDArray[np.float64]]]:
    for name in sorted(base):
        yield name, final[name].astype(np.float64) - base[name]


def _totals(base: Centre, final: Centre, tau: float) -> _Totals:
    moved = within = 0
    energy, energy_within = [], []
    for _, change in _changes(base, final):
        small = (change != 0) & (np.abs(change) <= tau)
        moved += int((change != 0).sum())
        within += int(small.sum())
        energy.append(float(np.square(change).sum()))
        energy_within.append(float(np.square(change[small]).sum()))
    return _Totals(moved, within, math.fsum(energy), math.fsum(energy_within))


def _reset(base: NDArray[np.float32], final: NDArray[np.float32], gone: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(gone, base, final)


def _random(seed: int) -> Keys:
    """A random order of all coordinates of the model, made anew tensor by tensor."""

    def keys(name: str, change: NDArray[np.float64]) -> NDArray[np.uint64]:
        generator = np.random.default_rng([seed, *name.encode()])
        return generator.integers(0, 2**64, change.shape, dtype=np.uint64)

    return keys


def _by_size(name: str, change: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Largest |change| first: the bits of a positive float64 are ordered as the number is."""
    return ~np.ascontiguousarray(np.abs(change)).view(np.uint64)


def _chosen(base: Centre, final: Centre, keys: Keys, by_energy: bool, target: float) -> dict[str, NDArray[np.bool_]]:
    """Moved coordinates in the order of their keys until their number, or their energy, comes to `target`.

    One pass finds the bin of leading key bits in which that happens, a second sorts the coordinates of that bin alone.
    """
    mass = np.zeros(_BINS)
    for name, change in _changes(base, final):
        weights = _weights(change, by_energy)
        mass += np.bincount((keys(name, change) >> np.uint64(48)).ravel(), weights.ravel(), minlength=_BINS)
    below = np.concatenate([[0.0], np.cumsum(mass)])
    edge = int(np.searchsorted(below, target, side="right")) - 1
    found: dict[str, NDArray[np.bool_]] = {}
    last: list[tuple[int, float, str, int]] = []
    for name, change in _changes(base, final):
        key, weights = keys(name, change), _weights(change, by_energy)
        coarse = key >> np.uint64(48)
        found[name] = (coarse < edge) & (change != 0)
        there = np.flatnonzero((coarse == edge) & (change != 0))
        last += [(int(key.flat[i]), float(weights.flat[i]), name, int(i)) for i in there]
    _fill(found, sorted(last), target - below[edge])
    return found


def _fill(found: dict[str, NDArray[np.bool_]], last: list[tuple[int, float, str, int]], left: float) -> None:
    """Take from `last` in order while the nearest total to `left` is not reached."""
    for _, weight, name, place in last:
        if left < weight / 2:
            break
        found[name].flat[place] = True
        left -= weight


def _weights(change: NDArray[np.float64], by_energy: bool) -> NDArray[np.float64]:
    return np.square(change) if by_energy else (change != 0).astype(np.float64)


SHARES = (0.278, 0.508, 0.791, 0.925, 0.976)
"""What the published thresholds reset of the Qwen2.5-1.5B update (Table 11)."""


def taus_for(base: Centre, final: Centre, shares: tuple[float, ...] = SHARES) -> tuple[float, ...]:
    """The taus that reset these shares of the moved coordinates; UserError when nothing moved, or all by the same."""
    sizes = np.concatenate([np.abs(change[change != 0]) for _, change in _changes(base, final)])
    if not sizes.size:
        raise UserError("the update moves nothing: there is nothing to threshold")
    return tuple(sorted({float(tau) for tau in np.quantile(sizes, shares, method="inverted_cdf")}))
