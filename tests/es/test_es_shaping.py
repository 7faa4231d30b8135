"""Shaping and estimators, by their formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadreach.config import EsSettings
from broadreach.es.estimators import direction_weights
from broadreach.es.loop import es_step, tell
from broadreach.es.schedules import alpha_at, sigma_at
from broadreach.es.shaping import centred_ranks, spread, z_score
from broadreach.noise.members import population_members
from broadreach.types import Perturbation, UserError


def test_z_score_is_the_population_z_score():
    rewards = [0.1, 0.4, 0.4, 1.0]
    expected = (np.array(rewards) - np.mean(rewards)) / (np.std(rewards) + 1e-8)
    np.testing.assert_allclose(z_score(rewards), expected, rtol=1e-14)


def test_centred_ranks_average_ties():
    np.testing.assert_allclose(centred_ranks([3.0, 1.0, 3.0, 7.0, 3.0]), [0.0, -0.5, 0.0, 0.5, 0.0])


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=20))
def test_centred_ranks_are_symmetric_and_bounded(rewards):
    ranks = centred_ranks([float(r) for r in rewards])
    assert abs(ranks.sum()) < 1e-9 and ranks.max() <= 0.5 and ranks.min() >= -0.5
    np.testing.assert_allclose(ranks, -centred_ranks([-float(r) for r in rewards]))


def test_equal_rewards_have_no_spread_at_all():
    assert spread([0.1] * 7) == 0.0  # the mean of seven 0.1 is not 0.1 in floating point


def test_a_reward_that_is_not_finite_is_refused_by_member():
    with pytest.raises(UserError, match="member 2"):
        spread([0.0, 1.0, float("nan")])


def test_constant_reward_gives_no_update():
    calls = []
    record = es_step(EsSettings(population=4), 0, 1, 10, lambda m, p: [0.1] * len(m), lambda u, p: calls.append(u))
    assert record.update is None and calls == [None]


def test_spread_below_the_floor_gives_no_update():
    settings = EsSettings(population=4, reward_std_floor=0.1)
    members = population_members(4, "one_point")
    assert tell(settings, members, (0.1, 0.2, 0.1, 0.2), Perturbation(0, 1, 0.1), 0.1).update is None
    assert tell(settings, members, (0.1, 0.9, 0.1, 0.2), Perturbation(0, 1, 0.1), 0.1).update is not None


def test_two_point_with_symmetric_rewards_cancels():
    settings = EsSettings(population=3, estimator="two_point")
    members = population_members(3, "two_point")
    rewards = tuple(float(member.direction) for member in members)  # F(+) = F(-) for every direction
    assert tell(settings, members, rewards, Perturbation(0, 1, 0.1), 0.1).update is None


def test_raw_one_point_weights_are_those_of_equation_6():
    settings = EsSettings(population=3, shaping="none")
    weights = direction_weights(settings, population_members(3, "one_point"), (0.2, 0.5, 0.1), sigma=0.01)
    np.testing.assert_allclose(weights, np.array([0.2, 0.5, 0.1]) / 0.01)


def test_raw_two_point_weights_are_those_of_equation_43():
    settings = EsSettings(population=2, shaping="none", estimator="two_point")
    weights = direction_weights(settings, population_members(2, "two_point"), (0.9, 0.1, 0.3, 0.4), sigma=0.01)
    np.testing.assert_allclose(weights, np.array([0.8, -0.1]) / (2 * 0.01))


def test_coefficients_carry_alpha_over_n():
    settings = EsSettings(population=2, alpha=0.5)
    record = tell(settings, population_members(2, "one_point"), (0.0, 1.0), Perturbation(0, 1, 0.1), 0.5)
    assert record.update is not None
    scaled = np.array(record.update.coefficients) * 2.0**-record.update.shift
    np.testing.assert_allclose(scaled, [-0.25, 0.25], rtol=1e-7)
    assert 2**29 <= max(abs(c) for c in record.update.coefficients) < 2**30


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
def test_schedules_start_at_the_value_and_end_at_the_fraction(schedule):
    settings = EsSettings(sigma=2.0, alpha=4.0, sigma_schedule=schedule, alpha_schedule=schedule, final_fraction=0.25)
    last = 1.0 if schedule == "constant" else 0.25
    assert sigma_at(settings, 1, 11) == 2.0 and alpha_at(settings, 1, 11) == 4.0
    assert sigma_at(settings, 11, 11) == pytest.approx(2.0 * last)
    assert alpha_at(settings, 11, 11) == pytest.approx(4.0 * last)
    middle = {"constant": 1.0, "linear": 0.625, "cosine": 0.625}[schedule]
    assert sigma_at(settings, 6, 11) == pytest.approx(2.0 * middle)
