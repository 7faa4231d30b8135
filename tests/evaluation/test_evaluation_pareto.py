"""Pareto fronts and their probabilities, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from broadreach.evaluation.pareto import non_dominated, pareto, pareto_average
from broadreach.types import UserError


def brute_front(points: list[tuple[float, float]]) -> list[bool]:
    return [
        not any(
            other[0] >= own[0] and other[1] >= own[1] and (other[0] > own[0] or other[1] > own[1]) for other in points
        )
        for own in points
    ]


def test_every_small_configuration_agrees_with_brute_force() -> None:
    grid = list(itertools.product((0.0, 0.5, 1.0), repeat=2))
    for points in itertools.product(grid, repeat=3):
        assert non_dominated(np.array(points)).tolist() == brute_front(list(points))


def test_probabilities_agree_with_a_plain_loop_over_the_same_draws() -> None:
    generator = np.random.default_rng(2)
    difficulty = generator.random((1, 15, 4))
    curves = {name: difficulty + 0.1 * generator.standard_normal((3, 15, 4)) for name in ("es", "grpo", "both")}
    curves["base"] = difficulty + 0.02
    found = pareto(curves, 4, draws=300, seed=7)
    picks = np.random.default_rng(7).integers(0, 15, size=(300, 15))
    seeds = np.random.default_rng([7, 1]).integers(0, 3, size=(300, 3))
    counts = np.zeros(4)
    for problems, chosen in zip(picks, seeds, strict=True):
        points = []
        for table in curves.values():
            rows = table[chosen] if len(table) == 3 else table
            mean = rows[:, problems].mean(axis=(0, 1))
            points.append((round(mean[0], 12), round(mean[3], 12)))
        counts += brute_front(points)
    assert [point.probability for point in found] == pytest.approx((counts / 300).tolist())
    assert [point.name for point in found] == list(curves) and 0 < found[0].probability < 1
    assert found[0].pass_at_1 == pytest.approx(curves["es"][:, :, 0].mean())
    assert [point.front for point in found] == brute_front([(p.pass_at_1, p.pass_at_k) for p in found])


def test_certain_cases() -> None:
    table = np.random.default_rng(3).random((2, 30, 5))
    found = {p.name: p for p in pareto({"a": table, "same": table, "worse": table - 0.01}, 5, draws=200)}
    assert found["a"].probability == found["same"].probability == 1.0 and found["a"].front and found["same"].front
    assert found["worse"].probability == 0.0 and not found["worse"].front


def test_the_average_over_tasks_weighs_them_equally() -> None:
    generator = np.random.default_rng(4)
    tasks = [{"a": generator.random((2, size, 3)), "b": generator.random((2, size, 3))} for size in (5, 50)]
    found = pareto_average(tasks, 3, draws=100)
    assert found[0].pass_at_k == pytest.approx(np.mean([task["a"][:, :, 2].mean() for task in tasks]))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"K = 16, but the stores hold 4 responses"):
        pareto({"a": np.zeros((3, 4))}, 16)
    with pytest.raises(ValueError, match="same problems"):
        pareto({"a": np.zeros((3, 4)), "b": np.zeros((2, 4))}, 2)
    with pytest.raises(ValueError, match="same methods"):
        pareto_average([{"a": np.zeros((3, 4))}, {"b": np.zeros((3, 4))}], 2)
