"""The perturbation and the update for GPUs (Triton): the same integers and the same roundings as the CPU kernels.

Imported only when weights live on a GPU. Floating-point contraction is off (`enable_fp_fusion=False`), because a fused
multiply-add would round once where the format rounds twice. Without a GPU, `TRITON_INTERPRET=1` (set before Triton is
imported) runs the kernels on the CPU; the tests prove the bits equal that way.
"""

from __future__ import annotations

import functools
import os

import numpy as np
import torch
import triton
import triton.language as tl

from broadreach.noise.philox import UInt64Array
from broadreach.noise.table import quantile_table
from broadreach.types import UserError

BLOCKS = 128
"""Philox blocks, of 8 elements each, made by one program."""

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def supported() -> bool:
    """Whether these kernels can run here: on an NVIDIA or AMD GPU, or in Triton's interpreter."""
    return torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"


@triton.jit
def _noise(table, key_lo, key_hi, hash_lo, hash_hi, first_block, BLOCKS: tl.constexpr):
    """Table entries, int16 [8 * BLOCKS], of the blocks from `first_block` on (int64)."""
    index = first_block + tl.arange(0, BLOCKS).to(tl.int64)
    c0 = tl.zeros((BLOCKS,), tl.uint32) + hash_lo
    c1 = tl.zeros((BLOCKS,), tl.uint32) + hash_hi
    c2 = (index & 0xFFFFFFFF).to(tl.uint32)
    c3 = (index >> 32).to(tl.uint32)
    k0 = tl.zeros((BLOCKS,), tl.uint32) + key_lo
    k1 = tl.zeros((BLOCKS,), tl.uint32) + key_hi
    m0 = tl.full((BLOCKS,), 0xD2511F53, tl.uint32)
    m1 = tl.full((BLOCKS,), 0xCD9E8D57, tl.uint32)
    w0 = tl.full((BLOCKS,), 0x9E3779B9, tl.uint32)
    w1 = tl.full((BLOCKS,), 0xBB67AE85, tl.uint32)
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(m0, c0), m0 * c0
        high1, low1 = tl.umulhi(m1, c2), m1 * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += w0
        k1 += w1
    words = tl.interleave(tl.interleave(c0, c2), tl.interleave(c1, c3))
    halves = tl.interleave(words & 0xFFFF, words >> 16)
    return tl.load(table + halves.to(tl.int32))


@triton.jit
def _perturb_kernel(
    theta, out, table, scale, key_lo, key_hi, hash_lo, hash_hi, offset, width, pitch, BLOCKS: tl.constexpr
):
    """One program: up to 8 * BLOCKS elements of one row."""
    row = tl.program_id(1).to(tl.int64)
    start = offset + row * pitch
    first_block = start // 8 + tl.program_id(0).to(tl.int64) * BLOCKS
    q = _noise(table, key_lo, key_hi, hash_lo, hash_hi, first_block, BLOCKS)
    column = first_block * 8 - start + tl.arange(0, 8 * BLOCKS)
    inside = (column >= 0) & (column < width)
    at = row * width + column
    value = tl.load(theta + at, mask=inside) + tl.load(scale) * q.to(tl.float32)
    tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _update_kernel(
    theta, base, table, keys, coefficients, factors, members, hash_lo, hash_hi, offset, size,
    ANCHORED: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """One program: up to 8 * BLOCKS elements, all members; `factors` holds 2**-(shift + 12) and anchor_decay."""
    first_block = offset // 8 + tl.program_id(0).to(tl.int64) * BLOCKS
    total = tl.zeros((8 * BLOCKS,), tl.int64)
    for member in range(members):
        key_lo, key_hi = tl.load(keys + 2 * member), tl.load(keys + 2 * member + 1)
        q = _noise(table, key_lo, key_hi, hash_lo, hash_hi, first_block, BLOCKS)
        total += tl.load(coefficients + member) * q.to(tl.int64)
    at = first_block * 8 - offset + tl.arange(0, 8 * BLOCKS)
    inside = (at >= 0) & (at < size)
    old = tl.load(theta + at, mask=inside).to(tl.float64)
    moved = old + total.to(tl.float64) * tl.load(factors)
    if ANCHORED:
        home = tl.load(base + at, mask=inside).to(tl.float64)
        moved = moved + tl.load(factors + 1) * (home - old)
    tl.store(theta + at, moved.to(tl.float32), mask=inside)


@functools.lru_cache(maxsize=16)
def _table(device: torch.device) -> torch.Tensor:
    return torch.from_numpy(quantile_table().copy()).to(device)


def _uint32(values: list[int], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.array(values, np.uint32)).to(device)
