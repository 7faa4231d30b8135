"""The paper's identities on random populations, with the stated order of their error (method.md section 6 and 7)."""

import numpy as np
import pytest

from broadreach.analysis.diversity import (
    js_success,
    population_gain,
    population_success,
    single_policy_success,
    weighted_gain,
)
from broadreach.analysis.ema import debiased_ema
from broadreach.analysis.estimator import coupling, kappa
from broadreach.analysis.theory import (
    bernoulli_kl,
    binary_entropy,
    coverage,
    gain_rates,
    gate_gain,
    gate_weights,
    js_rates,
    lemma_1,
    local_gain,
    local_gate_gain,
    shifted_weights,
    slack,
)

SCALES = np.array([0.2, 0.1, 0.05, 0.025])


def populations(seed, count=200, members=8):
    """Mean rates, and directions of spread with mean zero and largest entry 1."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.25, 0.75, (count, 1))
    spread = rng.standard_normal((count, members))
    spread -= spread.mean(axis=1, keepdims=True)
    return mean, spread / np.abs(spread).max(axis=1, keepdims=True)


def order(errors):
    """Slope of log error against log scale."""
    return np.polyfit(np.log(SCALES), np.log(np.array(errors)), 1)[0]


def test_js_success_is_entropy_of_the_mean_minus_mean_entropy():  # equation 10
    rng = np.random.default_rng(0)
    for p in rng.uniform(0, 1, (300, 6)):
        expected = binary_entropy(p.mean()) - binary_entropy(p).mean()
        assert js_success(p) == pytest.approx(float(expected), abs=1e-14)
        assert js_rates(p) == pytest.approx(float(expected), abs=1e-14)


def test_js_of_success_lies_between_zero_and_js_of_the_policies():  # equation 10
    rng = np.random.default_rng(1)
    for _ in range(500):
        policies = rng.dirichlet(np.full(7, rng.uniform(0.1, 2)), size=5)
        right = rng.random(7) < 0.5
        mixture = policies.mean(axis=0)
        js_pol = (policies * np.log(policies / mixture, where=policies > 0, out=np.zeros_like(policies))).sum(1).mean()
        js = js_success(np.clip(policies[:, right].sum(axis=1), 0, 1))
        assert 0 <= js <= js_pol + 1e-12


def test_population_success_by_enumeration_and_never_below_one_policy():  # equation 11
    rng = np.random.default_rng(2)
    for p in rng.uniform(0, 1, (200, 5)):
        total = sum(
            np.prod([q if hit else 1 - q for q, hit in zip(p, hits, strict=True)])
            for hits in np.ndindex(*(2,) * 5)
            if any(hits)
        )
        assert population_success(p) == pytest.approx(total, abs=1e-12)
        assert population_success(p) > single_policy_success(p)
        assert population_gain(p) == pytest.approx(float(gain_rates(p)), abs=1e-12)
    assert population_gain(np.full(5, 0.3)) == 0.0


def test_local_population_gain_errs_in_third_order():  # equation 25
    mean, spread = populations(3)
    errors = []
    for scale in SCALES:
        p = mean + scale * spread * 0.2
        errors.append(np.abs(gain_rates(p) - local_gain(mean[:, 0], js_rates(p), p.shape[1])).max())
    assert order(errors) > 2.8


def test_weighting_gains_n_times_the_covariance():  # equation 26, exact
    rng = np.random.default_rng(4)
    for _ in range(300):
        p, w = rng.uniform(0, 1, 9), rng.dirichlet(np.ones(9))
        covariance = float(((w - w.mean()) * (p - p.mean())).mean())
        assert w @ p - p.mean() == pytest.approx(9 * covariance, abs=1e-14)
        assert weighted_gain(w, p) == pytest.approx(9 * covariance, abs=1e-14)


def test_oracle_gate_errs_in_third_order():  # equation 31
    mean, spread = populations(5)
    for strength in (0.5, 2.0):
        errors = []
        for scale in SCALES:
            p = mean + scale * spread * 0.2
            errors.append(np.abs(gate_gain(p, strength) - local_gate_gain(mean[:, 0], js_rates(p), strength)).max())
        assert order(errors) > 2.8


def test_gate_weights_are_the_softmax_and_its_gain_is_a_covariance():  # equations 27 and 26
    p = np.array([0.1, 0.5, 0.9])
    w = gate_weights(p, 3.0)
    np.testing.assert_allclose(w, np.exp(3 * p) / np.exp(3 * p).sum(), rtol=1e-14)
    assert gate_gain(p, 3.0) == pytest.approx(weighted_gain(w, p), abs=1e-14)


def test_shifted_weights_are_affine_in_the_z_scores():  # Lemma 3
    rewards = np.array([0.1, 0.4, 0.4, 1.0])
    z = (rewards - rewards.mean()) / rewards.std()
    w = shifted_weights(rewards)
    np.testing.assert_allclose(w, (1 + z / abs(z.min())) / 4, rtol=1e-12)
    assert w.min() == 0 and w.sum() == pytest.approx(1)
    p = np.array([0.2, 0.1, 0.6, 0.9])
    assert weighted_gain(w, p) == pytest.approx(float((z * (p - p.mean())).mean() / abs(z.min())), abs=1e-14)
    np.testing.assert_array_equal(shifted_weights([0.3, 0.3]), [0.5, 0.5])


def test_proposition_1_is_never_violated():  # equations 12-14
    rng = np.random.default_rng(6)
    met = 0
    for _ in range(1000):
        prompts, k = int(rng.integers(1, 6)), int(rng.integers(1, 9))
        p_w = rng.uniform(0, 1, prompts)
        near = 10.0 ** rng.uniform(-4, -0.5)
        p_next = np.clip(p_w + near * rng.standard_normal(prompts), 1e-9, 1 - 1e-9)
        p_base = np.clip(p_w - rng.uniform(0, 0.6) * rng.uniform(0, 1, prompts), 0, 1)
        eps = bernoulli_kl(p_w, p_next).mean()
        j_w, j_next, j_base = (coverage(p, k).mean() for p in (p_w, p_next, p_base))
        room = slack(eps, k)
        assert j_next >= j_w - room - 1e-12
        if j_w - j_base > room:
            met += 1
            assert j_next > j_base
    assert met > 300  # the condition is not idle


def test_lemma_1_on_softmax_policies_errs_in_fourth_order():  # equation 9
    rng = np.random.default_rng(7)
    logits = rng.standard_normal(6)
    p = np.exp(logits) / np.exp(logits).sum()
    trace = (p * ((np.eye(6) - p) ** 2).sum(axis=1)).sum()  # E ||grad log p(y)||^2
    members = 4
    eps = rng.standard_normal((60_000, members, 6))
    eps = np.concatenate([eps, -eps])

    def js(sigma):
        q = np.exp(logits + sigma * eps)
        q /= q.sum(axis=2, keepdims=True)
        mixture = q.mean(axis=1, keepdims=True)
        return (q * np.log(q / mixture)).sum(axis=2).mean(axis=1)

    for sigma, allowed in ((0.1, 0.01), (0.05, 0.005)):
        found = js(sigma)
        error = 4 * found.std() / np.sqrt(len(found))
        assert found.mean() == pytest.approx(float(lemma_1(sigma, members, trace)), rel=allowed, abs=error)


def test_kappa_of_variables_with_known_covariance():  # equations 50 and 51
    rng = np.random.default_rng(8)
    for other, rho in ((1.0, 0.9), (1.0, 0.51), (1.0, 0.49), (2.0, 0.4), (0.5, 0.0)):
        raw = rng.standard_normal((2, 400))
        raw -= raw.mean(axis=1, keepdims=True)
        white = np.linalg.inv(np.linalg.cholesky(raw @ raw.T / 400)) @ raw  # sample covariance exactly the identity
        plus, second = white[0], other * (rho * white[0] + np.sqrt(1 - rho**2) * white[1])
        expected = 1 + other**2 - 2 * rho * other
        assert kappa(plus, second) == pytest.approx(expected, rel=1e-10)
        assert coupling(plus, second).subtraction_helps == (rho * other > other**2 / 2) == (expected < 1)


def test_debiasing_keeps_a_constant_and_starts_at_the_first_value():
    np.testing.assert_allclose(debiased_ema(np.full(500, 0.37)), 0.37, rtol=1e-13)
    assert debiased_ema([5.0, 1.0])[0] == pytest.approx(5.0)
