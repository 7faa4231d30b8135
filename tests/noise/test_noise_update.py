"""The update is exact integer arithmetic with one rounding: any order of members gives the same bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from broadreach import noise
from broadreach.noise import philox, update_kernel
from broadreach.noise.table import quantile_table
from broadreach.types import Update, UserError


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"a": (33, 70), "b": (5000,), "norm": (3,)}
    return {name: (rng.standard_normal(shape) * 0.02).astype(np.float32) for name, shape in shapes.items()}


def an_update(members: int, decay: float = 0.0) -> Update:
    z = np.random.default_rng(4).standard_normal(members)
    coefficients, shift = noise.quantise(0.003 * z / members)
    return Update(tuple(range(members)), coefficients, shift, decay)


def reference(theta: np.ndarray, name: str, update: Update, seed: int, step: int, base: np.ndarray) -> np.ndarray:
    """Python integers for the sum, then float64 operations one at a time."""
    total = np.zeros(theta.size, object)
    for direction, coefficient in zip(update.directions, update.coefficients, strict=True):
        total += coefficient * noise.direction_q(seed, step, direction, name, (theta.size,)).astype(object)
    old = theta.reshape(-1).astype(np.float64)
    moved = old + total.astype(np.float64) * 2.0 ** -(update.shift + 12)
    if update.anchor_decay:
        moved = moved + update.anchor_decay * (base.reshape(-1).astype(np.float64) - old)
    return moved.astype(np.float32).reshape(theta.shape)


@pytest.mark.parametrize("decay", [0.0, 0.013])
@pytest.mark.parametrize("members", [1, 2, 31])
def test_update_equals_the_reference(members, decay):
    centre, before, base = tensors(), tensors(), tensors(1)
    update = an_update(members, decay)
    noise.apply_update(centre, update, seed=6, step=7, base=base)
    for name, theta in before.items():
        expected = reference(theta, name, update, 6, 7, base[name])
        assert (centre[name].view(np.uint32) == expected.view(np.uint32)).all()
        assert (centre[name] != theta).any()


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(16)))
def test_members_in_any_order_give_the_same_bits(order):
    update = an_update(16)
    shuffled = Update(
        tuple(update.directions[i] for i in order), tuple(update.coefficients[i] for i in order), update.shift
    )
    one, other = tensors(), tensors()
    noise.apply_update(one, update, seed=1, step=1)
    noise.apply_update(other, shuffled, seed=1, step=1)
    assert noise.digest(one) == noise.digest(other)


def test_integer_and_float_sums_agree():
    theta = tensors()["b"]
    keys = np.array([philox.noise_key(1, 2, d) for d in range(20)], np.uint64)
    coefficients = np.random.default_rng(0).integers(-(2**30) + 1, 2**30, 20)
    results = []
    for dtype in (np.float64, np.int64):
        moved = theta.copy()
        update_kernel.update(
            moved, moved, quantile_table(), keys, coefficients.astype(dtype), 5, 3, math.ldexp(1, -50), 0.0
        )
        results.append(moved.view(np.uint32))
    assert (results[0] == results[1]).all()
    assert (results[0] != theta.view(np.uint32)).any()


def test_sums_beyond_float64_are_exact_in_int64():
    """600 equal members of one direction: every product has 45 bits and the sum 54, more than float64 holds."""
    coefficient = 2**30 - 1
    update = Update((7,) * 600, (coefficient,) * 600, 40)
    centre = {"b": tensors()["b"]}
    expected = reference(centre["b"], "b", update, 1, 1, centre["b"])
    noise.apply_update(centre, update, seed=1, step=1)
    assert (centre["b"].view(np.uint32) == expected.view(np.uint32)).all()


def test_large_sums_cancel_to_nothing():
    """In float64 the partial sums would round, and a unit of the sum is a unit of the weight here."""
    c = 2**30 - 1
    centre = tensors()
    before = noise.digest(centre)
    noise.apply_update(centre, Update((7,) * 1200, (c,) * 600 + (-c,) * 600, -12), seed=1, step=1)
    assert noise.digest(centre) == before


def test_an_update_that_could_overflow_is_refused_before_anything_moves():
    centre = tensors()
    before = noise.digest(centre)
    coefficients = (2**62, 2**62)
    with pytest.raises(UserError, match="beyond 64 bits"):
        noise.apply_update(centre, Update((0, 1), coefficients, 40), seed=1, step=1)
    assert noise.digest(centre) == before


def test_opposite_coefficients_of_one_direction_cancel_exactly():
    centre = tensors()
    before = noise.digest(centre)
    noise.apply_update(centre, Update((3, 3), (2**29, -(2**29)), 40), seed=1, step=1)
    assert noise.digest(centre) == before


def test_shard_of_an_update_is_the_part_of_the_whole():
    theta = tensors()["b"]
    whole, part = theta.copy(), theta[1003:2500].copy()
    keys, coefficients = np.array([11, 12], np.uint64), np.array([2.0**29, -(2.0**28)])
    update_kernel.update(whole, whole, quantile_table(), keys, coefficients, 5, 0, 2.0**-45, 0.0)
    update_kernel.update(part, part, quantile_table(), keys, coefficients, 5, 1003, 2.0**-45, 0.0)
    assert (part == whole[1003:2500]).all()


def test_anchor_alone_moves_towards_the_base():
    centre, base = {"w": np.full(10, 2.0, np.float32)}, {"w": np.zeros(10, np.float32)}
    noise.apply_update(centre, Update((), (), 0, anchor_decay=0.25), seed=1, step=1, base=base)
    assert (centre["w"] == 1.5).all()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12))
def test_quantised_weights_are_the_nearest_integers_with_thirty_bits(weights):
    assume(max(map(abs, weights)) > 1e-250)
    quantised = noise.quantise(weights)
    assert quantised is not None
    coefficients, shift = quantised
    assert 2**29 <= max(map(abs, coefficients)) < 2**30
    assert list(coefficients) == [round(Fraction(w) * Fraction(2) ** shift) for w in weights]


def test_quantise_keeps_its_bounds_at_powers_of_two():
    assert noise.quantise([1.0, -0.5, 0.0]) == ((2**29, -(2**28), 0), 29)
    below = math.nextafter(1.0, 0.0)  # rounds up to 2**30 at the larger shift
    assert noise.quantise([below]) == ((2**29,), 29)


def test_quantise_refuses_what_is_not_finite():
    assert noise.quantise([0.0, -0.0]) is None
    assert noise.quantise([]) is None
    for bad in (float("nan"), float("inf")):
        with pytest.raises(UserError, match="weight of member 1"):
            noise.quantise([1.0, bad])
    with pytest.raises(UserError, match="too small"):
        noise.quantise([5e-324])


def test_wrong_inputs_are_user_errors():
    good = Update((0,), (2**29,), 40)
    with pytest.raises(UserError, match="needs the base weights"):
        noise.apply_update(tensors(), Update((0,), (2**29,), 40, 0.1), seed=1, step=1)
    with pytest.raises(UserError, match="lack a"):
        noise.apply_update(tensors(), Update((0,), (2**29,), 40, 0.1), seed=1, step=1, base={})
    with pytest.raises(UserError, match="between 0 and 1"):
        noise.apply_update(tensors(), Update((0,), (2**29,), 40, 1.5), seed=1, step=1, base=tensors())
    with pytest.raises(UserError, match="contiguous, writable float32"):
        noise.apply_update({"a": np.zeros(3)}, good, seed=1, step=1)
    with pytest.raises(UserError, match="2 directions and 1 coefficients"):
        noise.apply_update(tensors(), Update((0, 1), (2**29,), 40), seed=1, step=1)


def test_digest_sees_names_shapes_and_every_bit():
    centre = tensors()
    base = noise.digest(centre)
    assert len(base) == 32
    assert noise.digest(dict(reversed(centre.items()))) == base
    assert noise.digest({**centre, "a": centre["a"].reshape(70, 33)}) != base
    renamed = {("z" if name == "a" else name): theta for name, theta in centre.items()}
    assert noise.digest(renamed) != base
    flipped = {**centre, "b": centre["b"].copy()}
    flipped["b"].view(np.uint32)[4321] ^= 1
    assert noise.digest(flipped) != base
    one, other = noise.tensor_digests(centre), noise.tensor_digests(flipped)
    assert [name for name in one if one[name] != other[name]] == ["b"]
