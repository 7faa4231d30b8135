"""Compiled CPU kernels of the perturbation (numba): noise made in registers, added, cast and written in one pass.

Arrays are C-contiguous. `offset` is the flat index, in the full row-major tensor, of an array's first element, so a
chunk or a shard of rows gets the same bits as the whole; for a shard of columns, `pitch` is the full row length.
Arithmetic is IEEE without contraction or reassociation: one float32 addition, then at most one cast.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from broadreach.noise.philox import UInt64Array, fill_words

CHUNK = 2048
"""Elements whose noise words lie in the first-level cache at once."""
TASK = 65536
"""Elements one thread takes at a time."""
SERIAL_BELOW = 32768
"""Smaller tensors are not worth waking a second thread for."""

BFLOAT16, FLOAT16 = 0, 1

UInt16Array = NDArray[np.uint16]
Float32Array = NDArray[np.float32]

_ONE = np.uint64(1)
_EXPONENT_ALL = np.uint32(0x7F800000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)


@njit(cache=True, nogil=True)
def chunk_words(
    buffer: UInt64Array, key: np.uint64, text_hash: np.uint64, first: int, count: int
) -> UInt16Array:
    """The 16-bit words of `count` elements from flat index `first`; `buffer` holds 2 * (CHUNK // 8 + 1) values."""
    lead = first % 8
    fill_words(buffer, (lead + count + 7) // 8, key, text_hash, np.uint64(first // 8), _ONE)
    return buffer.view(np.uint16)[lead : lead + count]


@njit(cache=True, nogil=True)
def _round_bfloat16(bits: NDArray[np.uint32], out: UInt16Array) -> None:
    """float32 bits to bfloat16 bits, nearest with ties to even; a NaN becomes the quiet NaN 0x7FC0."""
    for i in range(out.size):
        b = bits[i]
        rounded = (b + np.uint32(0x7FFF) + ((b >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        out[i] = np.uint16(0x7FC0) if (b & _MAGNITUDE) > _EXPONENT_ALL else np.uint16(rounded)


@njit(inline="always")
def _float16_bits(b: np.uint32) -> np.uint16:
    """One float32 to float16, nearest with ties to even, subnormals kept, overflow to infinity."""
    sign = (b >> np.uint32(16)) & np.uint32(0x8000)
    a = b & _MAGNITUDE
    if a >= np.uint32(0x47800000):  # 2**16 and above, infinity, NaN
        return np.uint16(sign | np.uint32(0x7E00 if a > _EXPONENT_ALL else 0x7C00))
    if a >= np.uint32(0x38800000):  # 2**-14 and above: normal in float16
        odd = (a >> np.uint32(13)) & np.uint32(1)
        return np.uint16(sign | ((a - np.uint32(0x38000000) + np.uint32(0xFFF) + odd) >> np.uint32(13)))
    shift = min(np.uint32(126) - (a >> np.uint32(23)), np.uint32(31))
    mantissa = (a & np.uint32(0x7FFFFF)) | np.uint32(0x800000)
    quotient = mantissa >> shift
    rest = mantissa & ((np.uint32(1) << shift) - np.uint32(1))
    half = np.uint32(1) << (shift - np.uint32(1))
    if rest > half or (rest == half and (quotient & np.uint32(1)) == np.uint32(1)):
        quotient += np.uint32(1)
    return np.uint16(sign | quotient)


@njit(cache=True, nogil=True)
def _round_float16(bits: NDArray[np.uint32], out: UInt16Array) -> None:
    for i in range(out.size):
        out[i] = _float16_bits(bits[i])


@njit(cache=True, nogil=True)
def _perturb_span(
    theta: Float32Array,
    out: Float32Array,
    table: Float32Array,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
) -> None:
    buffer = np.empty(2 * (CHUNK // 8 + 1), np.uint64)
    for start in range(0, theta.size, CHUNK):
        count = min(CHUNK, theta.size - start)
        words = chunk_words(buffer, key, text_hash, offset + start, count)
        source, target = theta[start : start + count], out[start : start + count]
        for i in range(count):
            target[i] = source[i] + table[words[i]]


@njit(cache=True, nogil=True)
def _perturb_half_span(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Float32Array,
    key: np.uint64,
    text_hash: np.uint64,
    offset: int,
) -> None:
    buffer = np.empty(2 * (CHUNK // 8 + 1), np.uint64)
    exact = np.empty(CHUNK, np.float32)
    bits = exact.view(np.uint32)
    for start in range(0, theta.size, CHUNK):
        count = min(CHUNK, theta.size - start)
        words = chunk_words(buffer, key, text_hash, offset + start, count)
        source = theta[start : start + count]
        for i in range(count):
            exact[i] = source[i] + table[words[i]]
        if kind == BFLOAT16:
            _round_bfloat16(bits, out[start : start + count])
        else:
            _round_float16(bits, out[start : start + count])


@njit(cache=True, nogil=True, parallel=True)
def _perturb_parallel(
    theta: Float32Array,
    out: Float32Array,
    table: Float32Array,
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
        _perturb_span(theta[row, start:stop], out[row, start:stop], table, key, text_hash, at)


@njit(cache=True, nogil=True, parallel=True)
def _perturb_half_parallel(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Float32Array,
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
        _perturb_half_span(theta[row, start:stop], out[row, start:stop], kind, table, key, text_hash, at)


def perturb(
    theta: Float32Array,
    out: Float32Array,
    table: Float32Array,
    key: int,
    text_hash: int,
    offset: int,
    pitch: int,
) -> None:
    """out = float32(theta + table[word]) for arrays [rows, width]; `table` already holds sigma and the sign."""
    k, h = np.uint64(key), np.uint64(text_hash)
    if theta.shape[0] == 1 and (theta.size < SERIAL_BELOW or get_num_threads() == 1):
        _perturb_span(theta[0], out[0], table, k, h, offset)
    else:
        _perturb_parallel(theta, out, table, k, h, offset, pitch)


def perturb_half(
    theta: Float32Array,
    out: UInt16Array,
    kind: int,
    table: Float32Array,
    key: int,
    text_hash: int,
    offset: int,
    pitch: int,
) -> None:
    """out = cast(float32(theta + table[word])) as bits of bfloat16 (kind 0) or float16 (kind 1), [rows, width]."""
    k, h = np.uint64(key), np.uint64(text_hash)
    if theta.shape[0] == 1 and (theta.size < SERIAL_BELOW or get_num_threads() == 1):
        _perturb_half_span(theta[0], out[0], kind, table, k, h, offset)
    else:
        _perturb_half_parallel(theta, out, kind, table, k, h, offset, pitch)


@njit(cache=True, nogil=True)
def _direction_span(
    out: NDArray[np.int16], table: NDArray[np.int16], key: np.uint64, text_hash: np.uint64, offset: int
) -> None:
    buffer = np.empty(2 * (CHUNK // 8 + 1), np.uint64)
    for start in range(0, out.size, CHUNK):
        count = min(CHUNK, out.size - start)
        words = chunk_words(buffer, key, text_hash, offset + start, count)
        for i in range(count):
            out[start + i] = table[words[i]]


def direction(
    out: NDArray[np.int16], table: NDArray[np.int16], key: int, text_hash: int, offset: int
) -> None:
    """out = table[word] for a flat int16 array."""
    _direction_span(out, table, np.uint64(key), np.uint64(text_hash), offset)
