"""Compiled CPU kernels of the perturbation (numba): noise made in registers, added, cast and written in one pass.

Arrays are C-contiguous. `offset` is the flat index, in the full row-major tensor, of an array's first element, so a
chunk or a shard of rows gets the same bits as the whole; for a shard of columns, `pitch` is the full row length.
Arithmetic is IEEE without contraction or reassociation: one float32 addition, then at most one cast.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from broadreach.noise.philox import BLOCKS, UInt64Array, fill_blocks

CHUNK = 8 * BLOCKS
"""Elements made at once; chunks start at multiples of it in the full tensor."""
TASK = 65536
"""Elements one thread takes at a time."""
SERIAL_BELOW = 32768
"""Smaller tensors are not worth waking a second thread for."""

BFLOAT16, FLOAT16 = 0, 1

Int16Array = NDArray[np.int16]
UInt16Array = NDArray[np.uint16]
UInt32Array = NDArray[np.uint32]
Float32Array = NDArray[np.float32]

_ONE = np.uint64(1)
_EXPONENT_ALL = np.uint32(0x7F800000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)


@njit(cache=True, nogil=True)
def chunk_noise(
    words: UInt64Array,
    noise: Int16Array,
    table: Int16Array,
    key: np.uint64,
    text_hash: np.uint64,
    first: int,
    count: int,
) -> Int16Array:
    """The table entries of `count` elements from flat index `first`, not past the end of its chunk.

    `words` (2 * BLOCKS) and `noise` (CHUNK) are scratch; the result is a view of `noise`.
    """
    lead = first % 8
    blocks = (lead + count + 7) // 8
    fill_blocks(words, blocks, key, text_hash, np.uint64(first // 8), _ONE)
    index = words.view(np.uint16)
    for b in range(blocks):
        for j in range(4):
            noise[8 * b + j] = table[index[4 * b + j]]
        for j in range(4):
            noise[8 * b + 4 + j] = table[index[4 * BLOCKS + 4 * b + j]]
    return noise[lead : lead + count]


@njit(cache=True, nogil=True)
def _round_bfloat16(bits: UInt32Array, out: UInt16Array) -> None:
    """float32 bits to bfloat16 bits, nearest with ties to even; a NaN becomes the quiet NaN 0x7FC0."""
    for i in range(out.size):
        b = bits[i]
        rounded = (b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        out[i] = np.uint16(0x7FC0) if (b & _MAGNITUDE) > _EXPONENT_ALL else np.uint16(rounded)


@njit(cache=True, nogil=True)
def _round_float16(bits: UInt32Array, shifted: UInt32Array, out: UInt16Array) -> None:
    """float32 bits to float16 bits, nearest with ties to even, subnormals kept, overflow to infinity.

    `shifted` holds the bits of |x| + 0.5, whose last place is the smallest float16 subnormal.
    """
    for i in range(out.size):
        magnitude = bits[i] & _MAGNITUDE
        odd = (magnitude >> np.uint32(13)) & np.uint32(1)
        value = (magnitude - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13)
        value = shifted[i] - np.uint32(0x3F000000) if magnitude < np.uint32(0x38800000) else value
        value = np.uint32(0x7C00) if magnitude >= np.uint32(0x47800000) else value
        value = np.uint32(0x7E00) if magnitude > _EXPONENT_ALL else value
        out[i] = np.uint16(value | ((bits[i] >> np.uint32(16)) & np.uint32(0x8000)))


@njit(cache=True, nogil=True)
def _perturb_span(
    theta: Float32Array,
    out: Float32Array,
    table: Int16Array,
    scale: np.float32,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
) -> None:
    words, noise = np.empty(2 * BLOCKS, np.uint64), np.empty(CHUNK, np.int16)
    start = 0
    while start < theta.size:
        count = min(CHUNK - (offset + start) % CHUNK, theta.size - start)
        q = chunk_noise(words, noise, table, key, text_hash, offset + start, count)
        source, target = theta[start : start + count], out[start : start + count]
        for i in range(count):
            target[i] = source[i] + scale * np.float32(q[i])
        start += count


@njit(cache=True, nogil=True)
def _perturb_half_span(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Int16Array,
    scale: np.float32,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
) -> None:
    words, noise = np.empty(2 * BLOCKS, np.uint64), np.empty(CHUNK, np.int16)
    exact, shifted = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    start = 0
    while start < theta.size:
        count = min(CHUNK - (offset + start) % CHUNK, theta.size - start)
        q = chunk_noise(words, noise, table, key, text_hash, offset + start, count)
        source, target = theta[start : start + count], out[start : start + count]
        for i in range(count):
            exact[i] = source[i] + scale * np.float32(q[i])
        if kind == BFLOAT16:
            _round_bfloat16(exact.view(np.uint32), target)
        else:
            for i in range(count):
                shifted[i] = abs(exact[i]) + np.float32(0.5)
            _round_float16(exact.view(np.uint32), shifted.view(np.uint32), target)
        start += count


@njit(cache=True, nogil=True, parallel=True)
def _perturb_parallel(
    theta: Float32Array,
    out: Float32Array,
    table: Int16Array,
    scale: np.float32,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
    pitch: int,
) -> None:
    rows, width = theta.shape
    pieces = (width + TASK - 1) // TASK
    for task in prange(rows * pieces):
        row, start = task // pieces, (task % pieces) * TASK
        stop = min(width, start + TASK)
        at = offset + row * pitch + start
        _perturb_span(theta[row, start:stop], out[row, start:stop], table, scale, key, text_hash, at)


@njit(cache=True, nogil=True, parallel=True)
def _perturb_half_parallel(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Int16Array,
    scale: np.float32,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
    pitch: int,
) -> None:
    rows, width = theta.shape
    pieces = (width + TASK - 1) // TASK
    for task in prange(rows * pieces):
        row, start = task // pieces, (task % pieces) * TASK
        stop = min(width, start + TASK)
        at = offset + row * pitch + start
        _perturb_half_span(theta[row, start:stop], out[row, start:stop], kind, table, scale, key, text_hash, at)


def perturb(
    theta: Float32Array,
    out: Float32Array,
    table: Int16Array,
    scale: np.float32,
    key: int,
    text_hash: int,
    offset: int,
    pitch: int,
) -> None:
    """out = float32(theta + float32(scale * q)) for arrays [rows, width]."""
    k, h = np.uint64(key), np.uint64(text_hash)
    if theta.shape[0] == 1 and (theta.size < SERIAL_BELOW or get_num_threads() == 1):
        _perturb_span(theta[0], out[0], table, scale, k, h, offset)
    else:
        _perturb_parallel(theta, out, table, scale, k, h, offset, pitch)


def perturb_half(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Int16Array,
    scale: np.float32,
    key: int,
    text_hash: int,
    offset: int,
    pitch: int,
) -> None:
    """out = cast(float32(theta + float32(scale * q))) as bits of bfloat16 (kind 0) or float16 (1), [rows, width]."""
    k, h = np.uint64(key), np.uint64(text_hash)
    if theta.shape[0] == 1 and (theta.size < SERIAL_BELOW or get_num_threads() == 1):
        _perturb_half_span(theta[0], out[0], kind, table, scale, k, h, offset)
    else:
        _perturb_half_parallel(theta, out, kind, table, scale, k, h, offset, pitch)


@njit(cache=True, nogil=True)
def _direction_span(out: Int16Array, table: Int16Array, key: np.uint64, text_hash: np.uint64, offset: int) -> None:
    words, noise = np.empty(2 * BLOCKS, np.uint64), np.empty(CHUNK, np.int16)
    start = 0
    while start < out.size:
        count = min(CHUNK - (offset + start) % CHUNK, out.size - start)
        q = chunk_noise(words, noise, table, key, text_hash, offset + start, count)
        out[start : start + count] = q
        start += count


def direction(out: Int16Array, table: Int16Array, key: int, text_hash: int, offset: int) -> None:
    """out = q for a flat int16 array."""
    _direction_span(out, table, np.uint64(key), np.uint64(text_hash), offset)
