"""Several training seeds: seeds are the outer level, problems are shared, pairs stay pairs."""

from __future__ import annotations

import numpy as np
import pytest

from broadreach.evaluation.seeds import seed_differences, seed_means, suite_differences, suite_means
from broadreach.evaluation.statistics import bootstrap_columns, bootstrap_seeds
from broadreach.types import UserError


def curves(seeds: int, problems: int, k: int = 3, spread: float = 0.1, start: int = 0) -> np.ndarray:
    generator = np.random.default_rng(start)
    difficulty = generator.random((1, problems, k))
    return (
        difficulty + spread * generator.standard_normal((seeds, 1, 1)) + 0.02 * generator.random((seeds, problems, k))
    )


def test_one_seed_is_the_bootstrap_over_problems_and_says_so() -> None:
    table = curves(1, 80)
    found = seed_means(table, draws=500, seed=3)
    assert list(found.intervals) == pytest.approx(bootstrap_columns(table[0], draws=500, seed=3))
    assert seed_means(table[0], draws=500, seed=3) == found
    assert "one seed" in found.note and "not of the training seed" in found.note and found.seeds == 1


def test_columns_agree_with_the_single_column_and_with_plain_loops() -> None:
    table = curves(3, 20)
    found = seed_means(table, draws=400, seed=5)
    alone = bootstrap_seeds(table[:, :, 1], draws=400, seed=5)
    assert found.intervals[1].low == pytest.approx(alone.low) and found.intervals[1].high == pytest.approx(alone.high)
    problems, seeds = np.random.default_rng(5), np.random.default_rng([5, 1])
    picks = problems.integers(0, 20, size=(400, 20))
    chosen = seeds.integers(0, 3, size=(400, 3))
    means = [np.mean([[table[s, p, 2] for p in picks[d]] for s in chosen[d]]) for d in range(400)]
    low, high = np.quantile(means, [0.025, 0.975])
    assert found.at(3).low == pytest.approx(low) and found.at(3).high == pytest.approx(high)
    assert "3 training seeds" in found.note and "18%" in found.note


def test_pairing_by_seed_and_problem_removes_what_both_share() -> None:
    b = curves(4, 60)
    a = b + 0.05
    found = seed_differences(a, b, draws=500)
    assert all(i.low == pytest.approx(0.05) == pytest.approx(i.high) for i in found.intervals)
    shuffled = seed_differences(a[[1, 2, 3, 0]], b, draws=500)
    assert shuffled.at(1).high - shuffled.at(1).low > 0.05


def test_a_base_without_seeds_stands_against_every_seed() -> None:
    a, base = curves(3, 50), curves(1, 50)[0]
    found = seed_differences(a, base, draws=300)
    assert found.at(2).value == pytest.approx((a - base).mean(axis=(0, 1))[1]) and found.seeds == 3


def test_tasks_weigh_equally_and_share_the_resampled_seeds() -> None:
    small, large = curves(3, 10, start=1), curves(3, 200, start=2)
    found = suite_means([small, large], draws=300)
    assert found.at(1).value == pytest.approx((small[:, :, 0].mean() + large[:, :, 0].mean()) / 2)
    shift = np.array([-0.3, 0.0, 0.3])[:, None, None]
    flat = [np.ones((3, 10, 1)) * 0.5 + shift, np.ones((3, 40, 1)) * 0.5 + shift]
    together, one = suite_means(flat, draws=500), seed_means(flat[0], draws=500)
    assert together.at(1).high - together.at(1).low == pytest.approx(one.at(1).high - one.at(1).low)
    changed = suite_differences([small + 0.1, large], [small, large], draws=300)
    assert changed.at(1).value == pytest.approx(0.05) and changed.at(1).above_zero


def test_intervals_over_seeds_cover_the_truth_about_that_often() -> None:
    generator = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        skill = 0.1 * generator.standard_normal((12, 1, 1))
        table = 0.5 + skill + 0.2 * generator.standard_normal((1, 60, 1)) + 0.1 * generator.standard_normal((12, 60, 1))
        interval = seed_means(table, draws=400, seed=trial).at(1)
        covered += interval.low <= 0.5 <= interval.high
    assert 0.87 <= covered / 200 <= 0.99


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"K = 4, but the stores hold 3"):
        seed_means(curves(2, 5), draws=10).at(4)
    for a, b in [((2, 5), (3, 5)), ((2, 5), (2, 6)), ((2, 5), (1, 5))]:
        with pytest.raises(ValueError, match="same problems"):
            seed_differences(curves(*a), curves(*b), draws=10)
    with pytest.raises(ValueError, match="finite"):
        seed_means([[float("nan")]])
    with pytest.raises(ValueError, match="same seeds"):
        suite_means([curves(2, 5), curves(3, 5)])
    with pytest.raises(ValueError, match="draws"):
        seed_means(curves(2, 5), draws=0)
