"""The compiled CPU kernel of seeded sampling (numba): arg max over the vocabulary of logit / T + Gumbel noise.

An entry with uniform number u has noise g = -log(-log(u)); all is computed in float64. Only entries that can win get
their two logarithms: -log(u) >= 1 - u, so an entry with 1 - u > exp(logit / T - best) scores below `best`, and groups
of 64 entries are dismissed by their largest logit and largest u. The result is always that of the full computation.
"""

from __future__ import annotations

import math

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from broadreach.noise.kernels import Float32Array
from broadreach.noise.philox import BLOCKS, UInt64Array, fill_blocks

GROUP = 64
_GROUP_BLOCKS = GROUP // 4
_HALF = np.uint64(32)
_STRIDE = np.uint64(2**32)
_PER_FILL = 4 * BLOCKS
_INFINITY = np.int32(0x7F800000)
_NEGATIVE_INFINITY = np.int32(-0x7F800001)
_LOWEST = np.int32(-(2**31))
_MAGNITUDE = np.int32(0x7FFFFFFF)
_SERIAL_BELOW = 65536
_SLACK = 1e-9
_ROUNDING = 1e-15


@njit(inline="always")
def _uniform(word: np.uint32) -> float:
    return (np.float64(word) + 0.5) * 2.0**-32


@njit(inline="always")
def _score(logit: np.float32, temperature: float, u: float) -> float:
    return np.float64(logit) / temperature - math.log(-math.log(u))


@njit(inline="always")
def _word(words32: NDArray[np.uint32], entry: int) -> np.uint32:
    """Output word `entry % 4` of block `entry // 4`, in the layout of `fill_blocks`."""
    return words32[(entry % 4) // 2 * 2 * BLOCKS + entry // 4 * 2 + entry % 2]


@njit(cache=True, nogil=True)
def _group_tops(logits: Float32Array, tops: Float32Array) -> bool:
    """Write the largest logit of each group; False if the row holds a NaN or +infinity, or nothing but -infinity."""
    bits, orders = logits.view(np.int32), tops.view(np.int32)
    largest, highest = np.int32(0), _LOWEST
    for group in range(tops.size):
        top = _LOWEST
        for i in range(group * GROUP, min(bits.size, (group + 1) * GROUP)):
            b = bits[i]
            top = max(top, b ^ ((b >> np.int32(31)) & _MAGNITUDE))  # orders like the float, and vectorises
            largest = max(largest, b & _MAGNITUDE)
        orders[group] = top ^ ((top >> np.int32(31)) & _MAGNITUDE)
        highest = max(highest, top)
    return bool(largest <= _INFINITY and _NEGATIVE_INFINITY < highest < _INFINITY)


@njit(cache=True, nogil=True)
def _mode(logits: Float32Array, tops: Float32Array) -> int:
    """The first entry with the largest logit."""
    group = int(np.argmax(tops))
    entry = group * GROUP
    while logits[entry] != tops[group]:
        entry += 1
    return entry


@njit(cache=True, nogil=True)
def _largest_uniform(words32: NDArray[np.uint32], block: int) -> float:
    """The largest uniform number of the group whose first block is `block`."""
    largest = np.uint32(0)
    for i in range(2 * block, 2 * (block + _GROUP_BLOCKS)):
        largest = max(largest, words32[i])
    for i in range(2 * (BLOCKS + block), 2 * (BLOCKS + block + _GROUP_BLOCKS)):
        largest = max(largest, words32[i])
    return _uniform(largest)


@njit(cache=True, nogil=True)
def _sample_row(
    logits: Float32Array, temperature: float, key: np.uint64, text_hash: np.uint64, position: np.uint64
) -> int:
    """The sampled entry of one row, or -1 for a row that `_group_tops` refuses."""
    vocab = logits.size
    tops = np.empty((vocab + GROUP - 1) // GROUP, np.float32)
    if not _group_tops(logits, tops):
        return -1
    words = np.empty(2 * BLOCKS, np.uint64)
    words32 = words.view(np.uint32)
    winner = _mode(logits, tops)
    fill_blocks(words, 1, key, text_hash, position + (np.uint64(winner // 4) << _HALF), _STRIDE)
    best = _score(logits[winner], temperature, _uniform(_word(words32, winner % 4)))
    for start in range(0, vocab, _PER_FILL):
        blocks = (min(vocab - start, _PER_FILL) + 3) // 4
        fill_blocks(words, blocks, key, text_hash, position + (np.uint64(start // 4) << _HALF), _STRIDE)
        for first in range(start, min(vocab, start + _PER_FILL), GROUP):
            top = np.float64(tops[first // GROUP]) / temperature
            limit = math.exp(top - best + _SLACK + _ROUNDING * (abs(top) + abs(best)))
            if 1.0 - _largest_uniform(words32, (first - start) // 4) > limit:
                continue
            for i in range(first, min(vocab, first + GROUP)):
                u = _uniform(_word(words32, i - start))
                if 1.0 - u > limit:
                    continue
                score = _score(logits[i], temperature, u)
                if score > best or (score == best and i < winner):
                    best, winner = score, i
    return winner


@njit(cache=True, nogil=True)
def _sample_serial(
    logits: Float32Array,
    temperature: float,
    keys: UInt64Array,
    hashes: UInt64Array,
    positions: UInt64Array,
    out: NDArray[np.int64],
) -> None:
    for row in range(out.size):
        out[row] = _sample_row(logits[row], temperature, keys[row], hashes[row], positions[row])


@njit(cache=True, nogil=True, parallel=True)
def _sample_parallel(
    logits: Float32Array,
    temperature: float,
    keys: UInt64Array,
    hashes: UInt64Array,
    positions: UInt64Array,
    out: NDArray[np.int64],
) -> None:
    for row in prange(out.size):
        out[row] = _sample_row(logits[row], temperature, keys[row], hashes[row], positions[row])


def gumbel_argmax(
    logits: Float32Array,
    temperature: float,
    keys: UInt64Array,
    hashes: UInt64Array,
    positions: UInt64Array,
) -> NDArray[np.int64]:
    """One entry per row of `logits` [rows, vocab], C-contiguous; the lowest entry of equal ones.

    -1 marks a row with a NaN or +infinity, or nothing but -infinity. Keys, hashes and positions are uint64 [rows].
    """
    out = np.empty(logits.shape[0], np.int64)
    small = logits.size < _SERIAL_BELOW or logits.shape[0] == 1 or get_num_threads() == 1
    (_sample_serial if small else _sample_parallel)(logits, temperature, keys, hashes, positions, out)
    return out
