"""The sigma probe and the noise floor on rewards of known make."""

import numpy as np
import pytest

from broadreach.analysis.probe import advise, floor_words, noise_floor, probe_sigma
from broadreach.types import UserError


def population(sigma, signal, noise, members=400, prompts=16, mean=0.5, seed=0):
    """Members whose true rewards have variance `signal`, and whose reward on one prompt has noise variance `noise`."""
    rng = np.random.default_rng(seed)
    true = mean + np.sqrt(signal) * rng.standard_normal((members, 1))
    batches = [true + np.sqrt(noise) * rng.standard_normal((members, prompts)) for _ in range(2)]
    return probe_sigma(sigma, *batches)


def floor(reward=0.5):
    return noise_floor(np.full((2, 8), reward), False, 8)


def test_signal_share_and_prompts_are_those_of_the_population():
    found = population(0.01, signal=0.01, noise=0.64)  # noise of a mean over 16: 0.04
    assert found.signal.value == pytest.approx(0.01, rel=0.25)
    assert found.spread**2 == pytest.approx(0.05, rel=0.1)
    assert found.share.value == pytest.approx(0.2, abs=0.05)
    assert found.share.low < 0.2 < found.share.high
    assert found.prompts_wanted == pytest.approx(64, rel=0.3)  # 0.64 / 64 = 0.01


def test_interval_of_the_share_covers_the_truth():
    hits = 0
    for seed in range(60):
        found = population(0.01, signal=0.01, noise=0.16, members=40, seed=seed)
        hits += found.share.low <= 0.5 <= found.share.high
    assert hits >= 50


def test_without_signal_no_prompts_are_named():
    found = population(0.01, signal=0.0, noise=0.64, members=40)
    assert found.signal.low <= 0 and found.prompts_wanted is None
    advice = advise([found], floor())
    assert advice.sigma is None and "no sigma" in advice.reason and "--prompts (now 16)" in advice.reason


def test_members_that_are_equal_on_a_batch_have_no_share():
    rng = np.random.default_rng(2)
    found = probe_sigma(0.001, rng.random((8, 5)), np.full((8, 5), 0.2))
    assert np.isnan(found.share.value) and found.signal.value == 0.0 and found.prompts_wanted is None
    assert "equal on a batch" in advise([found], floor()).reason


def test_the_sigma_with_the_largest_share_that_keeps_the_model_is_advised():
    weak = population(0.001, signal=0.001, noise=0.16)
    good = population(0.004, signal=0.02, noise=0.16)
    equal = population(0.008, signal=0.0205, noise=0.16)
    broken = population(0.05, signal=0.2, noise=0.16, mean=0.1)
    advice = advise([weak, good, equal, broken], floor())
    assert advice.sigma == 0.004 and advice.prompts == good.prompts_wanted
    assert "sigma 0.05 lose more than half" in advice.reason and "signal" in advice.reason


def test_when_every_sigma_destroys_the_model_none_is_advised():
    advice = advise([population(0.5, 0.1, 0.1, mean=0.0)], floor())
    assert advice.sigma is None and "smaller ones" in advice.reason


def test_noise_floor_of_known_spread():
    rng = np.random.default_rng(1)
    ease = 0.2 * rng.standard_normal(4_000)
    rewards = 0.5 + ease + 0.3 * rng.standard_normal((6, 4_000))
    found = noise_floor(rewards, False, 16)
    assert found.repeats == pytest.approx(0.3 / 4, rel=0.03)
    assert found.batches == pytest.approx(np.sqrt(0.2**2 + 0.3**2) / 4, rel=0.05)
    assert "other sampling seeds" in floor_words(found, 16)


def test_greedy_evaluation_has_no_floor_of_repeats_and_says_so():
    found = noise_floor(np.array([[0.0, 1.0, 1.0, 0.1]]), True, 4)
    assert found.repeats == 0.0 and found.batches > 0
    assert "greedy" in floor_words(found, 4) and "the floor of repeats is 0" in floor_words(found, 4)


def test_too_few_are_refused():
    with pytest.raises(UserError, match="4 members"):
        probe_sigma(0.1, np.zeros((3, 5)), np.zeros((3, 5)))
    with pytest.raises(UserError, match="at least 2"):
        noise_floor(np.zeros((1, 5)), False, 5)
