"""The compiled CPU kernel of the update (numba): theta is read and written once, all members' noise is made between.

The sum over members S = sum_i c_i q_i is exact, in float64 while every partial sum stays below 2**53 and in int64
above, so the order of members cannot matter. Then, each operation rounded on its own:
theta <- float32((float64(theta) + S * scale) + anchor_decay * (float64(base) - float64(theta))).
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from broadreach.noise.kernels import CHUNK, SERIAL_BELOW, TASK, Float32Array, chunk_noise
from broadreach.noise.philox import BLOCKS, UInt64Array

Coefficients = NDArray[np.float64] | NDArray[np.int64]
"""Float64 selects the float64 accumulator, int64 the integer one."""


@njit(cache=True, nogil=True)
def _update_span(
    theta: Float32Array,
    base: Float32Array,
    table: NDArray[np.int16],
    keys: UInt64Array,
    coefficients: Coefficients,
    text_hash: np.uint64,
    offset: int,
    scale: float,
    anchor_decay: float,
) -> None:
    words, noise = np.empty(2 * BLOCKS, np.uint64), np.empty(CHUNK, np.int16)
    total = np.empty(CHUNK, coefficients.dtype)
    start = 0
    while start < theta.size:
        count = min(CHUNK - (offset + start) % CHUNK, theta.size - start)
        total[:] = 0
        for member in range(keys.size):
            q = chunk_noise(words, noise, table, keys[member], text_hash, offset + start, count)
            c = coefficients[member]
            for i in range(count):
                total[i] += c * q[i]
        target = theta[start : start + count]
        if anchor_decay == 0.0:
            for i in range(count):
                target[i] = np.float32(np.float64(target[i]) + np.float64(total[i]) * scale)
        else:
            home = base[start : start + count]
            for i in range(count):
                old = np.float64(target[i])
                moved = old + np.float64(total[i]) * scale
                target[i] = np.float32(moved + anchor_decay * (np.float64(home[i]) - old))
        start += count


@njit(cache=True, nogil=True, parallel=True)
def _update_parallel(
    theta: Float32Array,
    base: Float32Array,
    table: NDArray[np.int16],
    keys: UInt64Array,
    coefficients: Coefficients,
    text_hash: np.uint64,
    offset: int,
    scale: float,
    anchor_decay: float,
) -> None:
    for task in prange((theta.size + TASK - 1) // TASK):
        start = task * TASK
        stop = min(theta.size, start + TASK)
        _update_span(
            theta[start:stop],
            base[start:stop],
            table,
            keys,
            coefficients,
            text_hash,
            offset + start,
            scale,
            anchor_decay,
        )


def update(
    theta: Float32Array,
    base: Float32Array,
    table: NDArray[np.int16],
    keys: UInt64Array,
    coefficients: Coefficients,
    text_hash: int,
    offset: int,
    scale: float,
    anchor_decay: float,
) -> None:
    """Update flat `theta` in place; `base` has its length (theta itself when `anchor_decay` is 0)."""
    run = _update_span if theta.size * keys.size < SERIAL_BELOW or get_num_threads() == 1 else _update_parallel
    run(theta, base, table, keys, coefficients, np.uint64(text_hash), offset, scale, anchor_decay)
