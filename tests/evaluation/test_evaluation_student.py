"""Student's t against printed tables, and its coverage where a bootstrap of few seeds has none."""

import numpy as np
import pytest

from broadreach.evaluation.student import student_interval, student_quantile


@pytest.mark.parametrize(
    ("degrees", "printed"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (120, 1.980)]
)
def test_quantiles_are_the_printed_ones(degrees, printed):
    assert student_quantile(0.95, degrees) == pytest.approx(printed, abs=6e-4)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_it_covers_the_mean_as_often_as_it_says(seeds):
    draws = np.random.default_rng(seeds).normal(size=(4000, seeds))
    found = [student_interval(row.tolist()) for row in draws]
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    assert covered == pytest.approx(0.95, abs=0.012)


def test_mistakes():
    with pytest.raises(ValueError, match="two or more"):
        student_interval([1.0])
    with pytest.raises(ValueError, match="between 0 and 1"):
        student_interval([1.0, 2.0], level=1.0)
