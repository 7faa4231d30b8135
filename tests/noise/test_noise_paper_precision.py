"""The published arithmetic, and what it costs: restoring by subtraction leaves bfloat16 weights changed."""

import numpy as np
import torch

from broadreach import noise

NAMES = {"seed": 1, "step": 2, "name": "w"}


def weights() -> torch.Tensor:
    values = np.random.default_rng(0).standard_normal(50_000) * 0.02
    return torch.from_numpy(values).to(torch.bfloat16).reshape(100, 500)


def test_perturbation_rounds_product_and_sum_in_the_model_dtype():
    served, before = weights(), weights()
    noise.paper_perturb_(served, direction=3, sign=-1, sigma=0.001, **NAMES)
    eps = torch.from_numpy(noise.direction(1, 2, 3, "w", (100, 500))).to(torch.bfloat16)
    assert torch.equal(served, before + (-0.001 * eps))


def test_restore_by_subtraction_changes_weights_and_ours_does_not():
    paper, exact, before = weights(), weights(), weights()
    centre = before.float().numpy()
    changed = []
    for member in range(100):
        noise.paper_perturb_(paper, direction=member, sign=1, sigma=0.001, **NAMES)
        noise.paper_restore_(paper, direction=member, sign=1, sigma=0.001, **NAMES)
        noise.perturb_into(centre, exact, direction=member, sign=1, sigma=0.001, **NAMES)
        noise.restore_into(centre, exact)
        changed.append(float((paper != before).double().mean()))
    assert torch.equal(exact, before)
    assert 0.02 < changed[0] < 0.2
    assert changed[-1] > 0.3


def test_update_does_not_land_on_large_bfloat16_weights():
    large = torch.full((20_000,), 0.5, dtype=torch.bfloat16)
    coefficients = [0.0005 / 30 * z for z in np.random.default_rng(1).standard_normal(30)]
    noise.paper_update_(large, directions=range(30), coefficients=coefficients, **NAMES)
    assert bool((large == 0.5).all())
    master = {"w": np.full(20_000, 0.5, np.float32)}
    quantised = noise.quantise(coefficients)
    assert quantised is not None
    from broadreach.types import Update

    noise.apply_update(master, Update(tuple(range(30)), *quantised), seed=1, step=2)
    assert (master["w"] != 0.5).mean() > 0.99


def test_update_in_float32_is_the_exact_one_up_to_rounding():
    served = weights().float()
    centre = {"w": served.numpy().copy()}
    coefficients = [0.003, -0.001, 0.0005]
    noise.paper_update_(served, directions=(4, 5, 6), coefficients=coefficients, **NAMES)
    quantised = noise.quantise(coefficients)
    assert quantised is not None
    from broadreach.types import Update

    noise.apply_update(centre, Update((4, 5, 6), *quantised), seed=1, step=2)
    np.testing.assert_allclose(served.numpy(), centre["w"], rtol=0, atol=1e-8)
    assert not np.array_equal(centre["w"], weights().float().numpy())
