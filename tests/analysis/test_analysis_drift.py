"""Drift and sparsity against plain NumPy over all coordinates at once; diversity and kappa against their identities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from broadreach.analysis.diversity import (
    js_success,
    population_gain,
    population_success,
    single_policy_success,
    weighted_gain,
)
from broadreach.analysis.drift import EDGES, TAUS, drift
from broadreach.analysis.estimator import kappa
from broadreach.models.distance import l2_norm, relative_l2
from broadreach.types import UserError

SHAPES = {
    "model.embed_tokens.weight": (40, 8),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.layers.0.mlp.down_proj.weight": (8, 16),
    "model.layers.0.self_attn.q_proj.bias": (8,),
    "model.layers.0.self_attn.q_proj.weight": (8, 8),
    "model.norm.weight": (8,),
}


def models(scale: float = 1e-3) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    generator = np.random.default_rng(0)
    base = {name: generator.standard_normal(shape, dtype=np.float32) for name, shape in SHAPES.items()}
    other = {
        name: np.where(
            generator.random(w.shape) < 0.5, w, w + np.float32(scale) * generator.random(w.shape, np.float32)
        )
        for name, w in base.items()
    }
    return base, other


def test_drift_and_sparsity_equal_the_formulas() -> None:
    base, other = models()
    flat = np.concatenate([base[n].ravel() for n in sorted(base)]).astype(np.float64)
    change = np.concatenate([other[n].ravel() for n in sorted(base)]).astype(np.float64) - flat
    found = drift(base, other)
    assert found.total.relative == pytest.approx(np.linalg.norm(change) / np.linalg.norm(flat), rel=1e-12)
    assert relative_l2(other, base.items()) == pytest.approx(found.total.relative, rel=1e-12)
    assert l2_norm(base) == pytest.approx(np.linalg.norm(flat), rel=1e-12)
    moved = np.abs(change) > 0
    assert 0 < moved.sum() < change.size and found.total.moved == moved.sum()
    for tau, share in zip(TAUS, found.total.sparsity, strict=True):
        assert share == (moved & (np.abs(change) <= tau)).sum() / moved.sum()
    assert found.total.maximum == np.abs(change).max()
    name, index = found.total.place
    assert abs(float(other[name].ravel()[index]) - float(base[name].ravel()[index])) == found.total.maximum
    assert found.histogram.sum() == change.size == found.total.size and found.histogram[0] == (~moved).sum()
    for edge in (10, 30, 36):
        assert found.histogram[: edge + 1].sum() == (np.abs(change) <= EDGES[edge]).sum()


def test_kinds_add_up_to_the_model() -> None:
    found = drift(*models())
    assert [kind.kind for kind in found.kinds] == ["attention_q", "bias", "embedding", "mlp", "norm"]
    assert sum(kind.size for kind in found.kinds) == found.total.size == sum(t.size for t in found.tensors)
    assert math.fsum(k.squared_change for k in found.kinds) == pytest.approx(found.total.squared_change)


def test_equal_models_have_no_drift_and_no_sparsity() -> None:
    base, _ = models()
    found = drift(base, base)
    assert found.total.relative == 0 and found.total.moved == 0
    assert all(math.isnan(share) for share in found.total.sparsity)


def test_unlike_models_and_bad_taus_are_refused() -> None:
    base, other = models()
    with pytest.raises(UserError, match=r"norm\.weight"):
        drift(base, {**other, "model.norm.weight": np.zeros(9, np.float32)})
    with pytest.raises(UserError, match="lm_head"):
        drift(base, {**other, "lm_head.weight": np.zeros(9, np.float32)})
    with pytest.raises(UserError, match="no tensors"):
        drift({}, {})
    for taus in ([0.0, 1.0], [-1.0], [2.0, 1.0], [float("nan")]):
        with pytest.raises(UserError, match="taus"):
            drift(base, other, taus)


def test_population_identities_hold_on_random_members() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        p = generator.random(generator.integers(1, 20)) ** 3
        gain = population_success(p) - single_policy_success(p)
        assert population_gain(p) >= 0 and gain == pytest.approx(population_gain(p), abs=1e-12)
        assert 0 <= js_success(p) <= math.log(2)
        weights = generator.dirichlet(np.ones(len(p)))
        assert weighted_gain(weights, p) == pytest.approx(float(weights @ p) - p.mean(), abs=1e-12)


def test_gain_is_the_divergence_to_leading_order() -> None:
    shifts = np.array([-1.0, 0.5, 0.25, 0.25])
    errors = []
    for step in (1e-2, 5e-3):
        p = 0.3 + step * shifts
        local = 4 * 0.3 * 0.7**3 * js_success(p)
        errors.append(abs(population_gain(p) - local))
    assert errors[1] == pytest.approx(errors[0] / 8, rel=0.2)


def test_kappa_of_known_covariance() -> None:
    generator = np.random.default_rng(2)
    shared, own, other = generator.standard_normal((3, 200_000))
    assert kappa(shared + own, shared + other) == pytest.approx(1.0, rel=0.02)
    assert kappa(shared + 0.1 * own, shared + 0.1 * other) < 0.05
    with pytest.raises(ValueError, match="does not vary"):
        kappa([1, 1, 1], [1, 2, 3])
