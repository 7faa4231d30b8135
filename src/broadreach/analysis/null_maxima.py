"""The largest changes that noise alone would make, by kind: from the spread in each octave of |weight|.

The number of coordinates beyond x is Poisson with mean lambda(x), the sum over octaves of (coordinates) * P(|d| > x).
In exact arithmetic d is Gaussian and the same in every octave; saving rounds it to whole units in the weight's last
place. In the published arithmetic the spread of an octave is measured on weights of that octave walked besides, and d
is Gaussian, or where it moves seldom, a difference of two Poisson numbers of units. Weights larger than any that was
sampled are not in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

LOWEST, OCTAVES = -40, 64
PROBES = 256
"""Weights walked besides in each octave."""
SELDOM = 25.0
"""Variance in units of the last place up to which whole units are counted."""
_BITS = {"bfloat16": 8, "float16": 11, "float32": 24}

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Maximum:
    """Median and 95 % range of the largest |change| over noise-only runs."""

    median: float
    low: float
    high: float
    top_share: float
    """Expected share, among the 100 largest changes of the model, of these coordinates."""


def octave(values: ArrayLike) -> NDArray[np.int64]:
    """Index of the octave of |value|: floor(log2 |value|) - LOWEST, within 0 to OCTAVES - 1."""
    exponents = np.frexp(np.abs(np.asarray(values, np.float64)))[1] - 1
    exponents = np.where(np.asarray(values) == 0, LOWEST, exponents)
    return np.clip(exponents - LOWEST, 0, OCTAVES - 1).astype(np.int64)


def probes(octaves: NDArray[np.int64], seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """PROBES weights spread over each of `octaves`, of either sign, and the octave of each."""
    generator = np.random.default_rng([seed, 0x0C7A])
    which = np.repeat(octaves, PROBES)
    sizes = np.ldexp(2.0 ** generator.random(which.size), which + LOWEST)
    return (sizes * generator.choice([-1.0, 1.0], which.size)).astype(np.float32), which


def maxima(sizes: Mapping[str, Floats], deviation: Floats, precision: str, dtype: str) -> dict[str, Maximum]:
    """The largest change of each part: coordinates by octave [octaves], spread by octave [octaves] -> Maximum."""
    upper = 60 * max(float(deviation.max()), _coarsest(sizes, dtype))
    tails = {name: _tail(part, deviation, precision, dtype) for name, part in sizes.items()}
    level = _solve(lambda x: sum(tail(x) for tail in tails.values()), 100.0, upper)
    inside = {name: tail(level) for name, tail in tails.items()}
    total = sum(inside.values()) or math.nan
    found = {}
    for name, tail in tails.items():
        low, median, high = (_solve(tail, -math.log(share), upper) for share in (0.025, 0.5, 0.975))
        found[name] = Maximum(median, low, high, inside[name] / total)
    return found


def _coarsest(sizes: Mapping[str, Floats], dtype: str) -> float:
    """Unit in the last place of the largest octave that has coordinates."""
    return max((_unit(int(np.flatnonzero(part).max()), dtype) for part in sizes.values() if part.any()), default=0.0)


def _tail(sizes: Floats, deviation: Floats, precision: str, dtype: str) -> Callable[[float], float]:
    """lambda(x) of one part."""
    used = np.flatnonzero((sizes > 0) & (deviation > 0))
    parts = [(float(sizes[i]), float(deviation[i]), _unit(int(i), dtype)) for i in used]

    def tail(x: float) -> float:
        return sum(size * _beyond(x, spread, unit, precision) for size, spread, unit in parts)

    return tail


def _beyond(x: float, deviation: float, unit: float, precision: str) -> float:
    """P(|d| > x)."""
    if precision == "exact":
        return math.erfc(x / (deviation * math.sqrt(2)))
    steps = math.floor(x / unit + 1e-9) + 1
    if precision == "saved":
        return math.erfc((steps - 0.5) * unit / (deviation * math.sqrt(2)))
    variance = (deviation / unit) ** 2
    if variance > SELDOM:
        return math.erfc(x / (deviation * math.sqrt(2)))
    beyond = _skellam(variance)
    return float(beyond[steps]) if steps < beyond.size else 0.0


@functools.lru_cache(maxsize=1024)
def _skellam(variance: float) -> Floats:
    """P(|K| >= k) for k = 0, 1, ...: K the difference of two Poisson numbers of mean variance / 2 each."""
    reach = np.arange(160)
    log = -variance / 2 + reach * math.log(variance / 2) - np.array([math.lgamma(k + 1) for k in reach])
    poisson = np.exp(log)
    upper = np.convolve(poisson, poisson[::-1])[reach.size - 1 :]
    beyond = 2 * np.cumsum(upper[::-1])[::-1]
    beyond[0] = 1.0
    return beyond


def _unit(index: int, dtype: str) -> float:
    """Unit in the last place of weights in an octave."""
    return math.ldexp(1.0, index + LOWEST + 1 - _BITS[dtype])


def _solve(tail: Callable[[float], float], wanted: float, upper: float) -> float:
    """The x at which tail(x) falls to `wanted`; 0 when it never reaches that."""
    if tail(0.0) <= wanted:
        return 0.0
    low, high = 0.0, upper
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > wanted else (low, middle)
    return high
