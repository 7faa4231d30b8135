"""precision = "paper": the published in-place arithmetic in the model's own dtype, so that its effect can be measured.

Noise is cast to the model dtype, sigma * eps is added to the served weights and later subtracted, and the update is
summed and added in the model dtype (the code published with arXiv 2509.24372). In bfloat16 neither the restore nor the
update is exact; that is the point. Directions are those of the exact arithmetic. All functions work in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import torch

from broadreach.noise.perturb import direction_q
from broadreach.noise.table import FRACTION_BITS, check_scale
from broadreach.types import UserError

_CHUNK = 2**22


def _chunks(weights: torch.Tensor, name: str) -> Iterator[tuple[int, torch.Tensor]]:
    if not weights.is_contiguous():
        raise UserError(f"noise: the weights of {name} must be contiguous for precision = 'paper'")
    flat = weights.detach().view(-1)
    for offset in range(0, flat.numel(), _CHUNK):
        yield offset, flat[offset : offset + _CHUNK]


def _noise(like: torch.Tensor, seed: int, step: int, direction: int, name: str, offset: int) -> torch.Tensor:
    q = torch.from_numpy(direction_q(seed, step, direction, name, (like.numel(),), offset))
    eps: torch.Tensor = q.to(torch.float32) / 2**FRACTION_BITS
    return eps.to(like.device, like.dtype)


def paper_perturb_(
    weights: torch.Tensor,
    *,
    seed: int,
    step: int,
    direction: int,
    sign: Literal[-1, 1],
    sigma: float,
    name: str,
) -> None:
    """weights += (sign * sigma) * eps, the product and the sum each rounded to the dtype of `weights`."""
    check_scale(sigma, sign)
    for offset, chunk in _chunks(weights, name):
        chunk.add_(sign * sigma * _noise(chunk, seed, step, direction, name, offset))


def paper_restore_(
    weights: torch.Tensor,
    *,
    seed: int,
    step: int,
    direction: int,
    sign: Literal[-1, 1],
    sigma: float,
    name: str,
) -> None:
    """Undo `paper_perturb_` by adding the opposite noise, which leaves rounding errors behind."""
    opposite: Literal[-1, 1] = 1 if sign < 0 else -1
    paper_perturb_(weights, seed=seed, step=step, direction=direction, sign=opposite, sigma=sigma, name=name)


def paper_update_(
    weights: torch.Tensor,
    *,
    seed: int,
    step: int,
    directions: Sequence[int],
    coefficients: Sequence[float],
    name: str,
) -> None:
    """weights += sum_i coefficients_i * eps_i (alpha * z_i / N), product, sum and addition in the weights' dtype."""
    for offset, chunk in _chunks(weights, name):
        total = torch.zeros_like(chunk)
        for which, coefficient in zip(directions, coefficients, strict=True):
            total.add_(_noise(chunk, seed, step, which, name, offset).mul_(coefficient))
        chunk.add_(total)
