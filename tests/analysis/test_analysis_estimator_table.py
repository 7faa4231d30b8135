"""Table 13: couplings against plain variances, objectives against their formulas, real scoring on the bundled model."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.estimator import kappa
from broadreach.analysis.estimator_measure import (
    FixedSequences,
    Protocol,
    direction_members,
    rollout_couplings,
    score_members,
    supervised_couplings,
)
from broadreach.analysis.estimator_moments import couplings
from broadreach.analysis.estimator_objectives import (
    clipped_surrogate,
    group_advantages,
    mean_log_probability,
    sequence_loss,
)
from broadreach.analysis.estimator_published import published
from broadreach.engines.hf import HfEngine
from broadreach.evaluation.published import published_rows
from broadreach.models.locate import locate
from broadreach.models.weights import load_centre
from broadreach.types import Perturbation, UserError

PAPER = Path(__file__).parents[3] / "shared/paper/estimator.csv"


def test_pooled_kappas_and_correlations_are_those_of_the_pooled_observations():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((12, 20)) + 3 * rng.standard_normal((12, 1)) + 100
    plus, minus = base + 0.3 * rng.standard_normal((2, 12, 20))
    found = couplings(plus, base, minus)
    assert found.kappa_base.value == pytest.approx(kappa(plus.ravel(), base.ravel()), rel=1e-9)
    assert found.kappa_pair.value == pytest.approx(kappa(plus.ravel(), minus.ravel()), rel=1e-9)
    assert found.corr_plus_base.value == pytest.approx(np.corrcoef(plus.ravel(), base.ravel())[0, 1], rel=1e-9)
    assert found.corr_plus_minus.value == pytest.approx(np.corrcoef(plus.ravel(), minus.ravel())[0, 1], rel=1e-9)
    within = (plus - base).var(axis=1).mean() / plus.var(axis=1).mean()
    assert found.within_kappa_base.value == pytest.approx(within, rel=1e-9)
    assert found.kappa_base.value < 0.25 * found.within_kappa_base.value  # pooling hides what happens within prompts
    for interval in (found.kappa_base, found.kappa_pair, found.within_kappa_pair, found.corr_plus_base):
        assert interval.low < interval.value < interval.high and interval.n == 12


def test_independent_evaluations_double_the_variance_and_common_ones_cancel():
    rng = np.random.default_rng(1)
    plus, base = (rng.random((2, 400, 60)) < 0.4).astype(float)
    assert couplings(plus, base, plus).kappa_base.value == pytest.approx(2.0, abs=0.05)
    assert couplings(plus, base, plus).kappa_pair.value == 0.0


def test_what_does_not_vary_has_no_kappa():
    flat = np.full((4, 3), 0.1)
    found = couplings(flat, flat, flat)
    assert math.isnan(found.kappa_base.value) and math.isnan(found.corr_plus_base.value)
    with pytest.raises(UserError, match="at least 2 prompts"):
        couplings(flat[:1], flat[:1], flat[:1])


def test_objectives_by_their_formulas():
    logs, base = [np.array([-1.0, -3.0]), np.array([-0.5])], [np.array([-1.2, -2.0]), np.array([-0.1])]
    advantages = np.array([2.0, -1.0])
    np.testing.assert_allclose(mean_log_probability(logs), [-2.0, -0.5])
    np.testing.assert_allclose(sequence_loss(logs, advantages), [8.0, -0.5])
    first = (min(np.exp(0.2), 1.2) + np.exp(-1.0)) * 2 / 2  # a gain is clipped, a loss is not
    second = -max(np.exp(-0.4), 0.8)  # a negative advantage stops at 0.8
    np.testing.assert_allclose(clipped_surrogate(logs, base, advantages), [first, second])
    np.testing.assert_allclose(clipped_surrogate(base, base, advantages), advantages)
    z = group_advantages(np.array([[0.0, 1.0, 1.0, 0.0], [0.1, 0.1, 0.1, 0.1]]))
    np.testing.assert_allclose(z, [[-1, 1, 1, -1], [0, 0, 0, 0]], atol=1e-6)


def test_directions_are_mirrored_and_every_point_has_generation_seeds_of_its_own():
    members = [member for triple in direction_members(3) for member in triple]
    assert len({member.index for member in members}) == 9
    assert [(m.direction, m.sign) for m in members[3:6]] == [(1, 1), (1, 0), (1, -1)]


def test_defaults_are_the_papers_sizes():
    sizes = Protocol()
    assert (sizes.prompts, sizes.seeds, sizes.directions) == (16, 16, 4)
    assert (sizes.prompts, sizes.rollouts) == (16, 8)
    assert sizes.targets * sizes.directions == 128


def test_published_rows_are_all_reachable():
    rows = published_rows("estimator.csv")
    if PAPER.exists():
        assert list(rows) == list(csv.DictReader(PAPER.open()))
    assert published("regenerated_reward", "common_seed", 1e-4)["kappa_base"] == 0.2288
    assert published("grpo_surrogate", "fixed_rollout", 1e-3)["kappa_pair"] == 0.0007
    assert published("supervised_cross_entropy", "fixed_batch", 1e-3)["corr_plus_base"] == 0.9776
    assert published("grpo_surrogate", "fixed_rollout", 1e-4) is None


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Token log-probabilities of 4 x 4 fixed sequences under two directions, by the engine."""
    directory = locate("nano")
    engine = HfEngine(directory)
    engine.load(load_centre(directory))
    rng = np.random.default_rng(2)
    sequences = [[tuple(rng.integers(4, 500, 6)) for _ in range(4)] for _ in range(4)]
    fixed = FixedSequences([tuple(rng.integers(4, 500, 12)) for _ in range(4)], sequences)
    protocol, perturbation = Protocol(4, 4, 4, 4, 2), Perturbation(0, 0, 3e-4)
    path = tmp_path_factory.mktemp("scores") / "units.jsonl"
    with UnitStore(path, {}) as store:
        first = score_members(engine, store, "scores", fixed, protocol, perturbation)
    with UnitStore(path, {}) as store:
        again = score_members(None, store, "scores", fixed, protocol, perturbation)  # nothing is scored twice
    return first, again


def test_stored_scores_are_read_back(scored):
    first, again = scored
    assert list(first) == ["base", "plus-0", "minus-0", "plus-1", "minus-1"] == list(again)
    for name in first:
        np.testing.assert_array_equal(np.concatenate(first[name]), np.concatenate(again[name]))


def test_fixed_sequences_move_linearly_so_the_pair_differs_twice_as_much_as_the_base(scored):
    rewards = np.array([[0.0, 1.0, 0.1, 0.1]] * 4)
    found = rollout_couplings(scored[0], rewards, 2)
    for result in found.values():
        assert result.kappa_base.value < 0.01 and result.corr_plus_minus.value > 0.99
        assert result.kappa_pair.value == pytest.approx(4 * result.kappa_base.value, rel=0.05)
    assert supervised_couplings(scored[0], 2).observations == 32
