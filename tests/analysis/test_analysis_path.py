"""The line through two models."""

import numpy as np
import pytest
from analysis_models import weights

from broadreach.analysis.path import check_points, interpolate
from broadreach.types import UserError


def test_ends_are_bit_exact_and_the_line_is_straight():
    start, end = weights(seed=1), weights(seed=2)
    for t, model in ((0.0, start), (1.0, end)):
        at = interpolate(start, end, t)
        assert all((at[name] == model[name]).all() and at[name] is not model[name] for name in model)
    for t in (-0.5, 0.25, 1.5):
        for name, array in interpolate(start, end, t).items():
            expected = (1 - t) * start[name].astype(np.float64) + t * end[name].astype(np.float64)
            np.testing.assert_allclose(array, expected, rtol=2e-7, atol=1e-8)
            assert array.dtype == np.float32


def test_scaling_an_update_scales_its_drift():
    start, end = weights(seed=1), weights(seed=2)
    name = "model.norm.weight"
    half = interpolate(start, end, 0.5)[name] - start[name].astype(np.float64)
    np.testing.assert_allclose(half, 0.5 * (end[name].astype(np.float64) - start[name]), atol=1e-6)


def test_mistakes():
    start = weights()
    with pytest.raises(UserError, match=r"model\.norm\.weight"):
        interpolate(start, {**start, "model.norm.weight": np.zeros(3, np.float32)}, 0.5)
    for points in ([], [0.0, 0.0], [float("inf")]):
        with pytest.raises(UserError, match="points"):
            check_points(points)
