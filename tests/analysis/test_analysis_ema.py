"""Smoothed curves against closed forms (Table 6, Figure 5)."""

import numpy as np
import pytest

from broadreach.analysis.ema import adequate, band, debiased_ema


def test_ema_is_the_weighted_mean_with_geometric_weights():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 60)
    for weight in (0.0, 0.5, 0.99):
        smooth = debiased_ema(x, weight)
        for t in (1, 2, 17, 60):
            w = weight ** np.arange(t - 1, -1, -1, dtype=float)
            assert smooth[t - 1] == pytest.approx((w @ x[:t]) / w.sum(), rel=1e-12)


def test_ema_of_a_step_has_its_closed_form():
    smooth = debiased_ema(np.r_[np.zeros(100), np.ones(100)], 0.99)
    t = np.arange(101, 201)
    np.testing.assert_allclose(smooth[100:], (1 - 0.99 ** (t - 100)) / (1 - 0.99**t), rtol=1e-12)
    assert (smooth[:100] == 0).all()


def test_ema_of_a_ramp_lags_by_weight_over_one_minus_weight():
    smooth = debiased_ema(np.arange(5_000.0), 0.99)
    assert 4_999 - smooth[-1] == pytest.approx(99, abs=1e-6)


def test_band_of_an_alternating_curve():
    x = np.tile([0.4, 0.6], 500)
    smooth = 0.5 + np.where(np.arange(1_000) % 2, 1, -1) * 0.1 * 0.01 / 1.99  # what is left of the alternation
    found = band(x, 0.99, window=20)  # 21 updates around each
    rest = x - smooth
    assert found[500] == pytest.approx(rest[490:511].std(), rel=1e-3)
    assert band(np.full(50, 0.3)).max() == pytest.approx(0.0, abs=1e-12)


def test_band_of_noise_is_its_standard_deviation():
    rng = np.random.default_rng(1)
    assert band(0.5 + 0.03 * rng.standard_normal(20_000), 0.999, window=2_001)[10_000] == pytest.approx(0.03, rel=0.05)


def test_a_population_is_adequate_within_one_point_of_the_largest():
    curves = {8: np.full(30, 0.58), 16: np.full(30, 0.59), 32: np.full(20, 0.7), 64: np.full(30, 0.6)}
    found = adequate(curves)
    assert found[8].share == 0.0 and found[8].first is None
    assert found[16].share == 1.0 and found[16].first == 1  # 0.01 below is within
    assert found[32].share == 1.0 and len(found[32].gap) == 20  # better is adequate; over the updates both have
    assert found[64].gap.max() == 0.0


def test_adequacy_that_begins_late_names_its_first_update():
    late = np.r_[np.full(10, 0.2), np.full(400, 0.65)]
    found = adequate({8: late, 64: np.full(410, 0.6)}, weight=0.5)[8]
    first = found.first
    assert first is not None and not found.adequate[first - 2] and found.adequate[first - 1 :].all()


@pytest.mark.parametrize("bad", [[], [[1.0]], [np.nan]])
def test_a_curve_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match="curve"):
        debiased_ema(bad)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="weight"):
        debiased_ema([1.0], 1.0)
    with pytest.raises(ValueError, match="window"):
        band([1.0], window=1)
    with pytest.raises(ValueError, match="reference population 64"):
        adequate({8: [1.0]}, 64)
