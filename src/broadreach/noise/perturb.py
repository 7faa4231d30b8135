"""Directions and perturbed weights: cast(theta + sign * sigma * eps(seed, step, direction)), restored by copying."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray

from broadreach.noise import kernels
from broadreach.noise.philox import noise_key, weights_hash
from broadreach.noise.table import FRACTION_BITS, check_scale, quantile_table
from broadreach.types import UserError

Weights = NDArray[np.float32] | torch.Tensor
"""Float32 master weights, contiguous, on the CPU unless the output is on a GPU."""

KNOWN_DIRECTIONS = (
    (0, 0, 0, "model.embed_tokens.weight", (7, 9), "32abdfb57f495058d8e8d82a2a931c1f"),
    (20260101, 3, 17, "model.layers.0.self_attn.q_proj.weight", (64, 48), "2e51cdf88bd1e4c68302c09ff49a7e0d"),
    (2**64 - 1, 2**32 - 1, 2**32 - 1, "lm_head.weight", (4099,), "b29b53fe7e8fc5a5802b6a9dd8879c67"),
)
"""(seed, step, direction, name, shape, xxh3-128 of the int16 bytes): the format's known answers."""

_HALF_KINDS = {torch.bfloat16: kernels.BFLOAT16, torch.float16: kernels.FLOAT16}


def _direction_q(seed: int, step: int, direction: int, name: str, count: int, offset: int) -> NDArray[np.int16]:
    out = np.empty(count, np.int16)
    kernels.direction(out, quantile_table(), noise_key(seed, step, direction), weights_hash(name), offset)
    return out


@functools.cache
def check_known_answers() -> None:
    """RuntimeError unless the compiled kernels make the three known directions; runs once a process."""
    for seed, step, member, name, shape, digest in KNOWN_DIRECTIONS:
        q = _direction_q(seed, step, member, name, math.prod(shape), 0)
        if xxhash.xxh3_128_hexdigest(q.tobytes()) != digest:
            raise RuntimeError(
                f"noise self-test failed for {name}: the compiled kernels are out of date or broken on this machine; "
                "remove src/broadreach/noise/__pycache__ and try again"
            )


def direction_q(
    seed: int, step: int, member: int, name: str, shape: Sequence[int], offset: int = 0
) -> NDArray[np.int16]:
    """The direction as int16 with 12 fractional bits, from flat element `offset` of the tensor `name`."""
    check_known_answers()
    return _direction_q(seed, step, member, name, math.prod(shape), offset).reshape(tuple(shape))


def direction(seed: int, step: int, member: int, name: str, shape: Sequence[int]) -> NDArray[np.float32]:
    """The standard normal direction `member` of one step for one tensor, float32 of `shape`.

    A pure function of its arguments and each element's index: the same on every device and in any sharding.
    """
    return direction_q(seed, step, member, name, shape).astype(np.float32) / np.float32(2**FRACTION_BITS)


def perturb_into(
    theta: Weights,
    out: torch.Tensor,
    *,
    seed: int,
    step: int,
    direction: int,
    sign: Literal[-1, 0, 1],
    sigma: float,
    name: str,
    offset: int = 0,
    row_length: int | None = None,
) -> None:
    """Write cast(theta + sign * sigma * eps) into `out` (float32, bfloat16 or float16); sign 0 restores.

    One float32 addition of float32(sigma * q / 4096), then one cast. A shard of the tensor `name` gives the flat index
    of its first element as `offset`; a shard of columns (of the last dimension) also its full `row_length`.
    """
    if sign == 0:
        restore_into(theta, out)
        return
    check_known_answers()
    scale = check_scale(sigma, sign)
    key, text_hash = noise_key(seed, step, direction), weights_hash(name)
    if out.is_cuda:
        from broadreach.noise import triton_kernels

        master = torch.as_tensor(theta, device=out.device)
        triton_kernels.perturb(master, out, float(scale), key, text_hash, offset, row_length)
        return
    source = _master(theta, name)
    width = source.size if row_length is None else source.shape[-1]
    if source.size == 0:
        return
    contiguous = out.detach() if out.is_contiguous() else torch.empty_like(out, memory_format=torch.contiguous_format)
    if contiguous.shape != source.shape:
        raise UserError(f"noise: {name} has shape {source.shape}, its output {tuple(out.shape)}; they must be equal")
    if out.dtype == torch.float32 and np.may_share_memory(source, contiguous.numpy()):
        raise UserError(f"noise: the output of {name} shares memory with its centre; copy the centre first")
    rows = source.reshape(-1, width)
    table, pitch = quantile_table(), row_length or 0
    if out.dtype == torch.float32:
        kernels.perturb(rows, contiguous.numpy().reshape(-1, width), table, scale, key, text_hash, offset, pitch)
    elif out.dtype in _HALF_KINDS:
        bits = contiguous.view(torch.uint16).numpy().reshape(-1, width)
        kind = _HALF_KINDS[out.dtype]
        kernels.perturb_half(rows, bits, kind, table, scale, key, text_hash, offset, pitch)
    else:
        raise UserError(f"noise: {name} is {out.dtype}; weights can be served in float32, bfloat16 or float16")
    if not out.is_contiguous():
        out.detach().copy_(contiguous)


def _master(theta: Weights, name: str) -> NDArray[np.float32]:
    array = theta.detach().numpy() if isinstance(theta, torch.Tensor) else theta
    if array.dtype != np.float32 or not array.flags.c_contiguous:
        raise UserError(f"noise: the centre of {name} must be contiguous float32, not {array.dtype}")
    return array


def restore_into(theta: Weights, out: torch.Tensor) -> None:
    """Write cast(theta) into `out`: the exact centre, whatever `out` held before."""
    source = torch.as_tensor(theta)
    if source.shape != out.shape:
        raise UserError(f"noise: the centre has shape {tuple(source.shape)}, its output {tuple(out.shape)}")
    out.detach().copy_(source)


def rounding_share(
    theta: Weights,
    sigma: float,
    dtype: torch.dtype | str,
    *,
    name: str = "",
    seed: int = 0,
    step: int = 0,
    limit: int = 2**18,
) -> float:
    """The share of coordinates, 0 to 1, that a perturbation leaves unchanged: cast(theta + sigma eps) = cast(theta).

    Measured with direction 0 on every k-th coordinate, at most `limit` of them. `dtype` may be a name ("bfloat16").
    """
    kind: torch.dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    flat = _master(theta, name).reshape(-1)
    chosen = np.ascontiguousarray(flat[:: max(1, -(-flat.size // limit))])
    if chosen.size == 0:
        return 0.0
    moved, still = torch.empty(chosen.size, dtype=kind), torch.empty(chosen.size, dtype=kind)
    perturb_into(chosen, moved, seed=seed, step=step, direction=0, sign=1, sigma=sigma, name=name)
    restore_into(chosen, still)
    return float((moved == still).double().mean())
