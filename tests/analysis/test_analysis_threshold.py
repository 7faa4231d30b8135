"""Thresholded updates and their controls: counts, energies and order against sorting all coordinates."""

import numpy as np
import pytest
from analysis_models import weights

from broadreach.analysis.drift import drift
from broadreach.analysis.threshold import CONTROLS, taus_for, thresholded
from broadreach.types import UserError

TAU = 1e-3


@pytest.fixture(scope="module")
def models():
    base = weights(seed=1)
    generator = np.random.default_rng(2)
    final = {
        name: np.where(
            generator.random(w.shape) < 0.2, w, w + np.float32(1e-3) * generator.standard_normal(w.shape, np.float32)
        )
        for name, w in base.items()
    }
    return base, final


def changes(base, other):
    return np.concatenate([(other[n].astype(np.float64) - base[n]).ravel() for n in sorted(base)])


def test_threshold_resets_exactly_the_small_coordinates(models):
    base, final = models
    kept, removed = thresholded(base, final, TAU, "threshold")
    full, left = changes(base, final), changes(base, kept)
    small = (np.abs(full) <= TAU) & (full != 0)
    assert (left[small] == 0).all() and (left[~small] == full[~small]).all()
    assert removed.share == drift(base, final, (TAU,)).total.sparsity[0] == small.sum() / (full != 0).sum()
    assert removed.energy == pytest.approx(np.square(full[small]).sum() / np.square(full).sum())


def test_controls_remove_as_many_or_as_much(models):
    base, final = models
    full = changes(base, final)
    _, small = thresholded(base, final, TAU, "threshold")
    for control in CONTROLS[1:]:
        kept, removed = thresholded(base, final, TAU, control)
        left = changes(base, kept)
        assert set(np.unique(left[left != full])) == {0.0}, "a coordinate is kept or reset, nothing else"
        if control == "random-energy":
            largest = np.square(full).max() / np.square(full).sum()
            assert removed.energy == pytest.approx(small.energy, abs=largest)
            assert removed.coordinates < small.coordinates
        else:
            assert removed.coordinates == small.coordinates
    kept, _ = thresholded(base, final, TAU, "keep-smallest")
    left = changes(base, kept)
    assert np.abs(left).max() <= np.abs(full[(left == 0) & (full != 0)]).min()


def test_random_controls_are_spread_over_tensors_and_fixed_by_the_seed(models):
    base, final = models
    first, removed = thresholded(base, final, TAU, "random-count", seed=1)
    again, _ = thresholded(base, final, TAU, "random-count", seed=1)
    other, _ = thresholded(base, final, TAU, "random-count", seed=2)
    assert all((first[n] == again[n]).all() for n in base) and any((first[n] != other[n]).any() for n in base)
    for name in ("model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight"):
        moved = final[name] != base[name]
        share = ((first[name] == base[name]) & moved).sum() / moved.sum()
        assert share == pytest.approx(removed.share, abs=0.06)


def test_inputs_are_left_alone_and_extremes_are_base_and_final(models):
    base, final = models
    copy = {name: array.copy() for name, array in final.items()}
    everything, removed = thresholded(base, final, 1.0, "threshold")
    assert removed.share == removed.energy == 1 and all((everything[n] == base[n]).all() for n in base)
    nothing, removed = thresholded(base, final, 1e-30, "keep-smallest")
    assert removed.coordinates == 0 and all((nothing[n] == final[n]).all() for n in base)
    assert all((copy[n] == final[n]).all() for n in base)


def test_taus_for_shares_and_mistakes(models):
    base, final = models
    taus = taus_for(base, final, (0.25, 0.9))
    shares = drift(base, final, taus).total.sparsity
    assert shares == pytest.approx((0.25, 0.9), abs=0.001)
    with pytest.raises(UserError, match="moves nothing"):
        taus_for(base, base)
    with pytest.raises(UserError, match="none of"):
        thresholded(base, final, TAU, "largest")
    with pytest.raises(UserError, match="positive"):
        thresholded(base, final, -1.0, "threshold")
