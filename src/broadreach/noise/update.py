"""The update in exact integers and the digest of the centre (design.md, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xxhash
from numpy.typing import NDArray

from broadreach.noise import update_kernel
from broadreach.noise.perturb import check_known_answers
from broadreach.noise.philox import noise_key, weights_hash
from broadreach.noise.table import FRACTION_BITS, quantile_table
from broadreach.types import Centre, Update, UserError

COEFFICIENT_BITS = 30
_FLOAT64_EXACT = 2**53
_INT64_EXACT = 2**63


def quantise(weights: Sequence[float]) -> tuple[tuple[int, ...], int] | None:
    """Integer coefficients c_i = round(weights_i * 2**K) and K, with max |c_i| in [2**29, 2**30); None if all are 0.

    `weights` are alpha * z_i / N. Rounding is half to even of the exact product. UserError if one is not finite, or if
    the largest lies outside 2**-900 to 2**900.
    """
    values = [float(w) for w in weights]
    if not all(math.isfinite(w) for w in values):
        bad = next(i for i, w in enumerate(values) if not math.isfinite(w))
        raise UserError(f"update: the weight of member {bad} is {values[bad]}; rewards and alpha must be finite")
    largest = max((abs(w) for w in values), default=0.0)
    if largest == 0.0:
        return None
    exponent = math.frexp(largest)[1]
    if abs(exponent) > 900:
        raise UserError(f"update: the largest weight is {largest}; alpha is too {'small' if exponent < 0 else 'large'}")
    shift = COEFFICIENT_BITS - exponent
    if round(math.ldexp(largest, shift)) == 2**COEFFICIENT_BITS:
        shift -= 1
    return tuple(round(math.ldexp(w, shift)) for w in values), shift


def apply_update(
    centre: Centre, update: Update, seed: int, step: int, base: Mapping[str, NDArray[np.float32]] | None = None
) -> None:
    """Add one step's update to every tensor of `centre` in place, in one pass each, exactly and in any member order.

    theta <- float32(float64(theta) + S * 2**-(shift + 12) + anchor_decay * (float64(base) - float64(theta))), each
    operation rounded on its own, S the exact integer sum. `base` is needed when `anchor_decay` is not 0. Everything is
    checked before the first tensor changes. UserError if S could leave 64 bits or something does not fit.
    """
    check_known_answers()
    keys, coefficients = _members(update, seed, step)
    decay = float(update.anchor_decay)
    _check_tensors(centre, base, decay)
    table, scale = quantile_table(), math.ldexp(1.0, -(update.shift + FRACTION_BITS))
    for name, theta in centre.items():
        flat = theta.reshape(-1)
        home = flat if base is None or decay == 0.0 else base[name].reshape(-1)
        update_kernel.update(flat, home, table, keys, coefficients, weights_hash(name), 0, scale, decay)


def _members(update: Update, seed: int, step: int) -> tuple[NDArray[np.uint64], update_kernel.Coefficients]:
    """Keys and coefficients of the members that move anything, the latter in the type that sums them exactly."""
    if len(update.directions) != len(update.coefficients):
        raise UserError(
            f"update: {len(update.directions)} directions and {len(update.coefficients)} coefficients; give one each"
        )
    bound = sum(abs(c) for c in update.coefficients) * int(quantile_table().max())
    if bound >= _INT64_EXACT:
        raise UserError(
            f"update: {len(update.coefficients)} members could sum to {bound}, beyond 64 bits; use a smaller population"
        )
    moving = [(d, c) for d, c in zip(update.directions, update.coefficients, strict=True) if c != 0]
    keys = np.array([noise_key(seed, step, d) for d, _ in moving], np.uint64)
    values = [c for _, c in moving]
    if bound < _FLOAT64_EXACT:
        return keys, np.array(values, np.float64)
    return keys, np.array(values, np.int64)


def _check_tensors(centre: Centre, base: Mapping[str, NDArray[np.float32]] | None, decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise UserError(f"update: anchor_decay is {decay}; it must lie between 0 and 1")
    if decay and base is None:
        raise UserError("update: anchor_decay needs the base weights; load them or set anchor_decay = 0")
    for name, theta in centre.items():
        if theta.dtype != np.float32 or not theta.flags.c_contiguous or not theta.flags.writeable:
            raise UserError(f"update: the centre of {name} must be contiguous, writable float32, not {theta.dtype}")
        if decay and base is not None:
            home = base.get(name)
            if home is None or home.shape != theta.shape or home.dtype != np.float32:
                raise UserError(f"update: the base weights lack {name} as float32 {theta.shape}")
            if not home.flags.c_contiguous:
                raise UserError(f"update: the base weights of {name} must be contiguous")


def _header(name: str, theta: NDArray[np.float32]) -> bytes:
    return f"{name}\0{','.join(map(str, theta.shape))}\0".encode()


def digest(centre: Mapping[str, NDArray[np.float32]]) -> str:
    """The xxh3-128 of the centre in hexadecimal: name, shape and little-endian bytes of each tensor, sorted by name."""
    state = xxhash.xxh3_128()
    for name in sorted(centre):
        state.update(_header(name, centre[name]))
        state.update(np.ascontiguousarray(centre[name], "<f4").reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def tensor_digests(centre: Mapping[str, NDArray[np.float32]]) -> dict[str, str]:
    """The digest of each tensor on its own, by name: finds which tensor of two unequal centres differs."""
    return {name: digest({name: centre[name]}) for name in sorted(centre)}
