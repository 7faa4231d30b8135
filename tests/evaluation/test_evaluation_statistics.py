"""Intervals: they cover, they pair, they resample problems (and seeds), never rows."""

from __future__ import annotations

import numpy as np
import pytest

from broadreach.evaluation.statistics import (
    bootstrap,
    bootstrap_columns,
    bootstrap_seeds,
    paired_bootstrap,
    paired_bootstrap_columns,
    small_sample_warning,
)


def test_ninety_five_percent_intervals_cover_the_truth_about_that_often() -> None:
    generator = np.random.default_rng(7)
    covered = 0
    for trial in range(300):
        interval = bootstrap(generator.beta(2, 5, size=80), draws=1000, seed=trial)
        covered += interval.low <= 2 / 7 <= interval.high
    assert 0.90 <= covered / 300 <= 0.98


def test_pairing_removes_the_spread_between_problems() -> None:
    generator = np.random.default_rng(1)
    hard = generator.random(200)
    base, better = hard, np.clip(hard + 0.03 + 0.01 * generator.standard_normal(200), 0, 1)
    paired = paired_bootstrap(better, base)
    alone = bootstrap(better)
    assert paired.above_zero and not paired.below_zero
    assert paired.high - paired.low < 0.1 * (alone.high - alone.low)


def test_a_method_against_itself_differs_by_exactly_nothing() -> None:
    values = np.random.default_rng(2).random(50)
    interval = paired_bootstrap(values, values)
    assert (interval.value, interval.low, interval.high) == (0.0, 0.0, 0.0)


def test_the_seed_fixes_the_interval_and_memory_blocks_do_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).integers(0, 2, 120)
    first = bootstrap(values, draws=500, seed=5)
    assert first == bootstrap(values, draws=500, seed=5) != bootstrap(values, draws=500, seed=6)
    monkeypatch.setattr("broadreach.evaluation.statistics._CELLS", 1000)
    assert first == bootstrap(values, draws=500, seed=5)


def test_columns_share_their_draws() -> None:
    table = np.random.default_rng(4).random((60, 3))
    columns = bootstrap_columns(table, draws=2000, seed=9)
    for index, interval in enumerate(columns):
        alone = bootstrap(table[:, index], draws=2000, seed=9)
        assert np.allclose([interval.low, interval.high], [alone.low, alone.high], rtol=0, atol=1e-12)
    paired = paired_bootstrap_columns(table, table * 0.5, draws=2000, seed=9)
    assert [p.value for p in paired] == pytest.approx(table.mean(axis=0) / 2)


def test_seeds_are_an_outer_level_that_widens_the_interval() -> None:
    generator = np.random.default_rng(5)
    difficulty = generator.random(150)
    shifts = np.array([-0.15, 0.0, 0.15])[:, None]
    spread = bootstrap_seeds(difficulty + shifts)
    same = bootstrap_seeds(np.stack([difficulty] * 3))
    alone = bootstrap(difficulty)
    assert spread.high - spread.low > 1.5 * (alone.high - alone.low)
    assert same.high - same.low == pytest.approx(alone.high - alone.low, rel=1e-9)
    assert spread.value == pytest.approx(difficulty.mean())


@pytest.mark.parametrize("values", [[], [[1.0]], [0.5, float("nan")]])
def test_values_that_are_no_problems_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="bootstrap"):
        bootstrap(values)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="draws"):
        bootstrap([1.0], draws=0)
    with pytest.raises(ValueError, match="level"):
        bootstrap([1.0], level=95)
    with pytest.raises(ValueError, match="same problems"):
        paired_bootstrap([1.0, 0.0], [1.0])


def test_small_sets_carry_a_warning() -> None:
    assert small_sample_warning(100) is None
    assert "only 30 problems" in str(small_sample_warning(30)) and "±18" in str(small_sample_warning(30))
