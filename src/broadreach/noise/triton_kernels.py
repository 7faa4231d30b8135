"""The perturbation and the update for GPUs (Triton): the same integers and the same roundings as the CPU kernels.

Imported only when weights live on a GPU. Floating-point contraction is off (`enable_fp_fusion=False`), because a fused
multiply-add would round once where the format rounds twice. Without a GPU, `TRITON_INTERPRET=1` (set before Triton is
imported) runs the kernels on the CPU; the tests prove the bits equal that way.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import numpy as np
import torch
import triton
import triton.language as tl

from broadreach.noise.table import quantile_table
from broadreach.types import UserError

BLOCKS = 128
"""Philox blocks, of 8 elements each, made by one program."""

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def supported() -> bool:
    """Whether these kernels can run here: on an NVIDIA or AMD GPU, or in Triton's interpreter."""
    return torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"


@triton.jit
def _noise(table, key_lo, key_hi, hash_lo, hash_hi, first_block, BLOCKS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Table entries, int16 [8 * BLOCKS], of the blocks from `first_block` (int64) on; keys and hashes are uint32."""
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
def _perturb_kernel(  # type: ignore[no-untyped-def]
    theta,
    out,
    table,
    scale,
    address,
    offset,
    width,
    pitch,
    pieces,
    BFLOAT16: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """One program: one of the `pieces` of a row, up to 8 * BLOCKS elements; `address` is key and hash, four uint32.

    bfloat16 is rounded here, in integers, and stored as int16: Triton's interpreter would truncate.
    """
    row = (tl.program_id(0) // pieces).to(tl.int64)
    start = offset + row * pitch
    first_block = start // 8 + (tl.program_id(0) % pieces).to(tl.int64) * BLOCKS
    key_lo, key_hi = tl.load(address), tl.load(address + 1)
    hash_lo, hash_hi = tl.load(address + 2), tl.load(address + 3)
    q = _noise(table, key_lo, key_hi, hash_lo, hash_hi, first_block, BLOCKS)
    column = first_block * 8 - start + tl.arange(0, 8 * BLOCKS)
    inside = (column >= 0) & (column < width)
    at = row * width + column
    value = tl.load(theta + at, mask=inside) + tl.load(scale) * q.to(tl.float32)
    if BFLOAT16:
        bits = value.to(tl.uint32, bitcast=True)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        rounded = tl.where((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FC0, rounded)
        tl.store(out + at, rounded.to(tl.uint16).to(tl.int16, bitcast=True), mask=inside)
    else:
        tl.store(out + at, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _update_kernel(  # type: ignore[no-untyped-def]
    theta,
    base,
    table,
    addresses,
    coefficients,
    factors,
    members,
    offset,
    size,
    ANCHORED: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """One program: up to 8 * BLOCKS elements, all members; `factors` holds 2**-(shift + 12) and anchor_decay."""
    first_block = offset // 8 + tl.program_id(0).to(tl.int64) * BLOCKS
    total = tl.zeros((8 * BLOCKS,), tl.int64)
    for member in range(members):
        address = addresses + 4 * member
        key_lo, key_hi = tl.load(address), tl.load(address + 1)
        hash_lo, hash_hi = tl.load(address + 2), tl.load(address + 3)
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


def _addresses(keys: Sequence[int], text_hash: int, device: torch.device) -> torch.Tensor:
    """Keys and hash as uint32 [members, 4] on the device: as scalar arguments their type would follow their value."""
    mask = 2**32 - 1
    words = [[key & mask, key >> 32, text_hash & mask, text_hash >> 32] for key in keys]
    return torch.from_numpy(np.array(words, np.uint32)).to(device)


def perturb(
    theta: torch.Tensor,
    out: torch.Tensor,
    scale: float,
    key: int,
    text_hash: int,
    offset: int = 0,
    row_length: int | None = None,
) -> None:
    """out = cast(float32(theta + float32(scale * q))): the GPU's `kernels.perturb` and `kernels.perturb_half`.

    `theta` float32 and `out` (float32, bfloat16 or float16) are contiguous, of one shape, on one device; `scale` is
    sign * sigma / 4096. `offset` and `row_length` place a shard, as in `perturb.perturb_into`.
    """
    if not (theta.is_contiguous() and out.is_contiguous() and theta.shape == out.shape):
        raise UserError("noise: theta and its output must be contiguous and of one shape on the GPU")
    if theta.dtype != torch.float32 or out.dtype not in _DTYPES:
        raise UserError(f"noise: theta must be float32 and its output one of {_DTYPES}; got {theta.dtype}, {out.dtype}")
    if theta.numel() == 0:
        return
    width = theta.numel() if row_length is None else theta.shape[-1]
    rows, pitch = theta.numel() // width, row_length or 0
    pieces = triton.cdiv(width + 7, 8 * BLOCKS)
    factor = torch.tensor([scale], dtype=torch.float32, device=theta.device)
    address = _addresses([key], text_hash, theta.device)
    table = _table(theta.device)
    bfloat16 = out.dtype == torch.bfloat16
    target = out.view(torch.int16) if bfloat16 else out
    _perturb_kernel[(rows * pieces,)](
        theta,
        target,
        table,
        factor,
        address,
        offset,
        width,
        pitch,
        pieces,
        BFLOAT16=bfloat16,
        BLOCKS=BLOCKS,
        enable_fp_fusion=False,
    )


def update_(
    theta: torch.Tensor,
    keys: Sequence[int],
    coefficients: Sequence[int],
    scale: float,
    text_hash: int,
    *,
    offset: int = 0,
    base: torch.Tensor | None = None,
    anchor_decay: float = 0.0,
) -> None:
    """theta <- float32(float64(theta) + S * scale + anchor_decay * (float64(base) - float64(theta))) in place.

    The GPU's `update_kernel.update`, always with int64 sums; `scale` is 2**-(shift + 12).
    """
    if not theta.is_contiguous() or theta.dtype != torch.float32:
        raise UserError(f"update: the centre must be contiguous float32 on the GPU, not {theta.dtype}")
    device = theta.device
    anchored = base is not None and anchor_decay != 0.0
    factors = torch.tensor([scale, anchor_decay], dtype=torch.float64, device=device)
    numbers = torch.tensor(list(coefficients), dtype=torch.int64, device=device)
    grid = (triton.cdiv(theta.numel() + 7, 8 * BLOCKS),)
    _update_kernel[grid](
        theta,
        base if anchored else theta,
        _table(device),
        _addresses(keys, text_hash, device),
        numbers,
        factors,
        len(numbers),
        offset,
        theta.numel(),
        ANCHORED=anchored,
        BLOCKS=BLOCKS,
        enable_fp_fusion=False,
    )
