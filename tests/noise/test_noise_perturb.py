"""Perturbed weights are the documented arithmetic bit for bit, and restoring is copying."""

import numpy as np
import pytest
import torch

from broadreach import noise
from broadreach.noise import philox, table
from broadreach.types import UserError

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def wide_range(count: int) -> np.ndarray:
    """Values of every magnitude that matters: subnormal in float16, overflowing it, exact ties, signed zeros."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal(count) * 10.0 ** rng.uniform(-9, 6, count)
    values[:6] = [0.0, -0.0, 65519.0, 65520.0, 2.0**-24, 6.0e-8]
    return values.astype(np.float32)


def reference(theta: np.ndarray, dtype: torch.dtype, sigma: float, sign: int) -> torch.Tensor:
    """NumPy noise, one float32 addition, PyTorch's own cast."""
    words = philox.words_reference(philox.noise_key(1, 2, 3), philox.weights_hash("w"), 0, theta.size)
    moved = theta.reshape(-1) + sign * table.sigma_table(sigma)[words]
    return torch.from_numpy(moved.reshape(theta.shape)).to(dtype)


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.contiguous().view(torch.uint8).numpy()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [1e-7, 0.001, 3.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_perturbation_equals_the_numpy_reference(dtype, sigma, sign):
    theta = wide_range(10_007)
    out = torch.empty(theta.shape, dtype=dtype)
    noise.perturb_into(theta, out, seed=1, step=2, direction=3, sign=sign, sigma=sigma, name="w")
    assert (bits(out) == bits(reference(theta, dtype, sigma, sign))).all()


def test_exact_ties_go_to_even():
    """theta + q / 256 around 1: most sums lie exactly between two bfloat16 values."""
    theta = np.ones(10_000, np.float32)
    out = torch.empty(theta.shape, dtype=torch.bfloat16)
    noise.perturb_into(theta, out, seed=1, step=2, direction=3, sign=1, sigma=16.0, name="w")
    assert torch.equal(out, reference(theta, torch.bfloat16, 16.0, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_non_finite_weights_stay_non_finite(dtype):
    theta = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    out = torch.empty(4, dtype=dtype)
    noise.perturb_into(theta, out, seed=1, step=2, direction=3, sign=1, sigma=0.1, name="w")
    assert out.isnan().tolist() == [True, False, False, False]
    assert out[1:3].tolist() == [float("inf"), float("-inf")]


@pytest.mark.parametrize("dtype", DTYPES)
def test_restore_is_bit_exact_after_a_thousand_members(dtype):
    theta = wide_range(257).reshape(1, 257)
    served = torch.from_numpy(theta.copy()).to(dtype)
    before = bits(served).copy()
    for member in range(1000):
        sign = 1 if member % 2 else -1
        noise.perturb_into(theta, served, seed=1, step=0, direction=member // 2, sign=sign, sigma=0.01, name="w")
        assert (bits(served) != before).any()
        noise.restore_into(theta, served)
    assert (bits(served) == before).all()


def test_sign_zero_serves_the_centre():
    theta = wide_range(100)
    out = torch.empty(100, dtype=torch.bfloat16)
    noise.perturb_into(theta, out, seed=1, step=0, direction=0, sign=0, sigma=0.01, name="w")
    assert (bits(out) == bits(torch.from_numpy(theta).to(torch.bfloat16))).all()


def test_parameters_and_tensors_are_accepted():
    theta = torch.randn(8, 8)
    parameter = torch.nn.Parameter(torch.zeros(8, 8))
    noise.perturb_into(theta, parameter, seed=1, step=0, direction=0, sign=1, sigma=0.5, name="w")
    eps = torch.from_numpy(noise.direction(1, 0, 0, "w", (8, 8)))
    torch.testing.assert_close(parameter.detach(), theta + 0.5 * eps)
    noise.restore_into(theta, parameter)
    assert torch.equal(parameter.detach(), theta)


def test_mirrored_members_average_to_the_centre():
    theta = np.zeros(1000, np.float32)
    plus, minus = torch.empty(1000), torch.empty(1000)
    noise.perturb_into(theta, plus, seed=1, step=0, direction=0, sign=1, sigma=0.5, name="w")
    noise.perturb_into(theta, minus, seed=1, step=0, direction=0, sign=-1, sigma=0.5, name="w")
    assert torch.equal(plus, -minus)


def test_wrong_inputs_are_user_errors():
    out = torch.empty(4)
    arguments = {"seed": 1, "step": 0, "direction": 0, "sign": 1, "sigma": 0.1, "name": "layers.0.weight"}
    with pytest.raises(UserError, match=r"layers\.0\.weight must be contiguous float32"):
        noise.perturb_into(np.zeros(4), out, **arguments)
    with pytest.raises(UserError, match="they must be equal"):
        noise.perturb_into(np.zeros(5, np.float32), out, **arguments)
    with pytest.raises(UserError, match="float32, bfloat16 or float16"):
        noise.perturb_into(np.zeros(4, np.float32), out.double(), **arguments)
    theta = np.zeros(4, np.float32)
    with pytest.raises(UserError, match="shares memory with its centre"):
        noise.perturb_into(theta, torch.from_numpy(theta), **arguments)
    with pytest.raises(UserError, match="has shape"):
        noise.restore_into(np.zeros((1, 4), np.float32), out)


def test_rounding_share_counts_what_the_cast_swallows():
    ones = np.ones(100_000, np.float32)
    # bfloat16 has steps of 2**-8 below 1 and 2**-7 above: a move by less than half a step is lost.
    expected = reference(ones, torch.bfloat16, 0.004, 1)
    assert noise.rounding_share(ones, 0.004, torch.bfloat16) == pytest.approx(
        float((expected == 1).double().mean()), abs=0.01
    )
    assert noise.rounding_share(ones, 1e-6, "bfloat16") == 1.0
    assert noise.rounding_share(ones, 0.01, torch.float32) < 0.001
    assert noise.rounding_share(np.zeros((0, 3), np.float32), 0.01, torch.float32) == 0.0
