"""The measures of continual learning on a matrix worked out by hand, and their intervals on known spreads."""

import numpy as np
import pytest

from broadreach.analysis.forgetting import continual
from broadreach.types import UserError

MATRIX = np.array([[0.1, 0.2, 0.3], [0.8, 0.3, 0.3], [0.6, 0.9, 0.5], [0.5, 0.7, 1.0]])
"""[base and three stages][three tasks]."""


def scores(matrix: np.ndarray, problems: int) -> list[np.ndarray]:
    return [np.repeat(column[:, None], problems, axis=1) for column in matrix.T]


def test_measures_of_a_matrix_by_hand():
    found = continual(["a", "b", "c"], scores(MATRIX, 5), draws=50)
    np.testing.assert_allclose([[cell.value for cell in line] for line in found.matrix], MATRIX)
    assert found.average_accuracy.value == pytest.approx((0.5 + 0.7 + 1.0) / 3)
    assert found.backward_transfer.value == pytest.approx(((0.5 - 0.8) + (0.7 - 0.9)) / 2)
    assert found.forward_transfer.value == pytest.approx(((0.3 - 0.2) + (0.5 - 0.3)) / 2)
    assert found.average_forgetting.value == pytest.approx(((0.8 - 0.5) + (0.9 - 0.7)) / 2)
    for cell in (found.average_forgetting, found.backward_transfer):
        assert cell.low == pytest.approx(cell.value) and cell.high == pytest.approx(cell.value)


def test_intervals_are_paired_over_stages_and_independent_over_tasks():
    generator = np.random.default_rng(0)
    hard = generator.random((2, 200))
    table = [np.stack([hard[0], hard[0] + 0.1, hard[0]]), np.stack([hard[1], hard[1], hard[1] + 0.2])]
    found = continual(["a", "b"], table, draws=2000)
    assert found.backward_transfer.value == pytest.approx(-0.1)
    assert found.backward_transfer.high - found.backward_transfer.low < 1e-9, "the problems' difficulty cancels"
    width = found.average_accuracy.high - found.average_accuracy.low
    expected = 2 * 1.96 * np.sqrt(hard[0].var() / 200 + hard[1].var() / 200) / 2
    assert width == pytest.approx(expected, rel=0.1)


def test_mistakes():
    with pytest.raises(UserError, match="at least two"):
        continual(["a"], scores(MATRIX[:2, :1], 3))
    with pytest.raises(UserError, match="task b"):
        continual(["a", "b"], [np.zeros((3, 4)), np.zeros((2, 4))])
