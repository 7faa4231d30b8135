"""Pareto fronts of (Pass@1, Pass@K), with the probability over bootstrap draws that a point is non-dominated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from broadreach.evaluation.seeds import as_seeds, check_k
from broadreach.evaluation.statistics import DRAWS, Floats, seed_draws


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """One method in the plane of Figure 3."""

    name: str
    pass_at_1: float
    pass_at_k: float
    front: bool
    """Non-dominated by the estimates themselves."""
    probability: float
    """Share of the draws in which it is non-dominated."""


def pareto(curves: Mapping[str, ArrayLike], k: int, *, draws: int = DRAWS, seed: int = 0) -> list[ParetoPoint]:
    """The points of several methods on one task: name -> Pass@K [seeds, problems, K] or [problems, K].

    Every draw resamples problems (the same for all methods) and seeds (the same for all methods with equally many).
    A point is dominated when another is at least as good in both and better in one. UserError when K was not drawn,
    ValueError when the methods have different problems.
    """
    return pareto_average([curves], k, draws=draws, seed=seed)


def pareto_average(
    tasks: Sequence[Mapping[str, ArrayLike]], k: int, *, draws: int = DRAWS, seed: int = 0
) -> list[ParetoPoint]:
    """As `pareto` for the average over tasks, which weigh equally; every task holds the same methods."""
    tables = [{name: as_seeds(curve) for name, curve in task.items()} for task in tasks]
    names = list(tables[0]) if tables else []
    if not names or any(set(table) != set(names) for table in tables):
        raise ValueError("pareto: give at least one method, and the same methods for every task")
    for table in tables:
        if len({curve.shape[1:] for curve in table.values()}) != 1:
            shapes = {name: curve.shape[1:] for name, curve in table.items()}
            raise ValueError(f"pareto: (problems, K) differ between methods, {shapes}; align them to the same problems")
        check_k(k, table[names[0]].shape[2])
    points = np.array([_mean_over_tasks(tables, name, k) for name in names])
    drawn = np.stack([_drawn(tables, name, k, draws, seed) for name in names], axis=1)
    probability, front = non_dominated(drawn).mean(axis=0), non_dominated(points)
    return [
        ParetoPoint(name, float(point[0]), float(point[1]), bool(on_front), float(chance))
        for name, point, on_front, chance in zip(names, points, front, probability, strict=True)
    ]


def non_dominated(points: Floats) -> NDArray[np.bool_]:
    """Which points no other dominates: [..., methods, 2] -> [..., methods]; equal points do not dominate each other."""
    other, own = points[..., None, :, :], points[..., :, None, :]
    dominated = (other >= own).all(axis=-1) & (other > own).any(axis=-1)
    return np.logical_not(np.asarray(dominated.any(axis=-1), dtype=np.bool_))


def _pair(curve: Floats, k: int) -> Floats:
    return curve[:, :, [0, k - 1]]


def _mean_over_tasks(tables: Sequence[Mapping[str, Floats]], name: str, k: int) -> Floats:
    return np.mean([_pair(table[name], k).mean(axis=(0, 1)) for table in tables], axis=0)


def _drawn(tables: Sequence[Mapping[str, Floats]], name: str, k: int, draws: int, seed: int) -> Floats:
    parts = [seed_draws(_pair(table[name], k), draws, seed, stream) for stream, table in enumerate(tables)]
    return np.mean(parts, axis=0)
