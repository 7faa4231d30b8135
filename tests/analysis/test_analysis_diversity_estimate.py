"""Bias correction and permutation null of the success diversity, on simulated populations."""

import itertools

import numpy as np
import pytest

from broadreach.analysis.diversity_estimate import check_samples, corrected_js, jackknifed, permutation_null
from broadreach.analysis.theory import gain_rates, js_rates
from broadreach.types import UserError


def simulated(kind, members, prompts=6_000, seed=0):
    rng = np.random.default_rng(seed)
    centre = rng.uniform(0, 1, (prompts, 1))
    if kind == "equal members":
        return np.repeat(centre, members, axis=1)
    if kind == "spread":
        return np.clip(centre + 0.15 * rng.standard_normal((prompts, members)), 0, 1)
    return rng.beta(4 * centre + 1e-3, 4 * (1 - centre) + 1e-3, (prompts, members))


@pytest.mark.parametrize("samples", [4, 8, 16])
@pytest.mark.parametrize("members", [8, 32])
@pytest.mark.parametrize("kind", ["equal members", "spread", "wide"])
def test_corrected_bias_is_below_a_tenth_of_the_plug_in_bias(kind, members, samples):
    p = simulated(kind, members)
    counts = np.random.default_rng(1).binomial(samples, p)
    truth = js_rates(p).mean()
    plug_in = js_rates(counts / samples).mean() - truth
    assert plug_in == pytest.approx((1 - 1 / members) / (2 * samples), rel=0.4)
    assert abs(corrected_js(counts, samples).mean() - truth) < 0.1 * plug_in


def test_jackknife_by_deleting_every_response_in_turn():
    counts, samples = np.array([[0, 3, 5, 2]]), 5
    whole = js_rates(counts / samples)[0]
    expected = whole
    for member in range(4):
        deleted = []
        for response in range(samples):
            hit = response < counts[0, member]
            rates = counts[0] / samples
            rates[member] = (counts[0, member] - hit) / (samples - 1)
            deleted.append(float(js_rates(rates)))
        expected -= (samples - 1) * (np.mean(deleted) - whole)
    assert corrected_js(counts, samples)[0] == pytest.approx(expected, rel=1e-12)


def test_what_is_linear_in_every_rate_needs_no_correction():
    counts = np.random.default_rng(2).integers(0, 7, (20, 5))

    def population(p):
        return 1 - (1 - p).prod(axis=-1)

    np.testing.assert_allclose(jackknifed(population, counts, 6), population(counts / 6), atol=1e-12)


def test_prompts_are_cut_into_parts_without_changing_anything(monkeypatch):
    counts = np.random.default_rng(3).integers(0, 9, (37, 6))
    whole = corrected_js(counts, 8)
    monkeypatch.setattr("broadreach.analysis.diversity_estimate._CELLS", 100)
    np.testing.assert_array_equal(corrected_js(counts, 8), whole)


def test_permutation_null_by_enumeration():
    counts, samples = np.array([[3, 0, 1]]), 3
    values = []
    for split in itertools.permutations(range(9), 4):  # places of the four successes
        dealt = [sum(1 for place in split if place // 3 == member) / 3 for member in range(3)]
        values.append(float(js_rates(np.array(dealt))))
    null = permutation_null(js_rates, counts, samples, draws=40_000)
    assert null.mean == pytest.approx(np.mean(values), rel=0.01)
    observed = float(js_rates(counts / samples)[0])
    share = np.mean(np.array(values) >= observed - 1e-12)
    assert null.p_value == pytest.approx(share, abs=0.01)


def test_null_of_equal_members_is_uniform_and_of_different_ones_small():
    rng = np.random.default_rng(4)
    p = np.repeat(rng.uniform(0.1, 0.9, (10, 1)), 6, axis=1)
    values = [permutation_null(js_rates, rng.binomial(4, p), 4, draws=200).p_value for _ in range(200)]
    assert np.mean(np.array(values) < 0.2) == pytest.approx(0.2, abs=0.09)
    spread = np.clip(p + 0.3 * rng.standard_normal(p.shape), 0, 1)
    assert permutation_null(gain_rates, rng.binomial(16, spread), 16).p_value < 0.01


def test_too_few_responses_are_refused_with_the_number_that_is_enough():
    with pytest.raises(UserError, match=r"--samples 1: .* at least 4 .* give --samples 4"):
        check_samples(1)
    check_samples(4)
    with pytest.raises(ValueError, match="0 to m = 3"):
        jackknifed(js_rates, np.array([[4]]), 3)
