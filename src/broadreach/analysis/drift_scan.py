"""One compiled pass over a piece of two tensors: sums of squares, counts between edges, the largest changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

BLOCK = 4096
"""Elements summed plainly in float64; the blocks' sums are added without further rounding."""

LEAD = 15
"""Leading bits of a positive float64 (11 of the exponent, 4 of the mantissa) that look up where counting starts."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def starting_bins(edges: Floats) -> Ints:
    """For the leading LEAD bits of a positive float64 the first edge that such a number can reach: [2**LEAD]."""
    lowest = (np.arange(1 << LEAD, dtype=np.int64) << (63 - LEAD)).view(np.float64)
    return np.searchsorted(edges, lowest, side="left").astype(np.int64)


@njit(cache=True, nogil=True)
def scan(
    base: NDArray[Any],
    other: NDArray[Any],
    third: NDArray[Any],
    edges: Floats,
    first: Ints,
    counts: Ints,
    above: float,
    places: Ints,
    sums: Floats,
) -> int:
    """Add a piece to `counts`, write the sums of each block and the places of |delta| > `above`; returns their number.

    `base`, `other`, `third`: [elements]; `third` may be empty. `counts` [edges + 1]: number i holds edges[i-1] <
    |delta| <= edges[i]. `places` [elements]. `sums` [blocks, 5]: delta^2, base^2, delta * delta of third, the latter's
    square, and the largest |delta|.
    """
    change = np.empty(BLOCK, np.float64)
    bits = change.view(np.int64)
    found = 0
    for block in range(sums.shape[0]):
        start = block * BLOCK
        count = min(BLOCK, base.size - start)
        squared = norm = dot = second = peak = 0.0
        for i in range(count):
            before = np.float64(base[start + i])
            delta = np.float64(other[start + i]) - before
            squared += delta * delta
            norm += before * before
            change[i] = abs(delta)
            if third.size:
                turn = np.float64(third[start + i]) - before
                dot += delta * turn
                second += turn * turn
        for i in range(count):
            size = change[i]
            place = first[bits[i] >> (63 - LEAD)]
            while place < edges.size and edges[place] < size:
                place += 1
            counts[place] += 1
            if size > above:
                places[found] = start + i
                found += 1
            peak = max(peak, size)
        sums[block, 0], sums[block, 1], sums[block, 2], sums[block, 3] = squared, norm, dot, second
        sums[block, 4] = peak
    return found
