"""The intervals of a comparison, each computed once: levels, gains over the base, differences between methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from broadreach.evaluation.pareto import ParetoPoint, pareto_average
from broadreach.evaluation.seeds import SeedIntervals, suite_differences, suite_means
from broadreach.evaluation.statistics import DRAWS, Floats, Interval, seed_draws
from broadreach.evaluation.summary import Json
from broadreach.report.comparison_data import Comparison, Method, TaskData

BASE = "base"


@dataclass(frozen=True, slots=True)
class Curves:
    """Entries {value, low, high} of Pass@K and Maj@K, K = 1 first."""

    passes: tuple[Json, ...]
    majorities: tuple[Json, ...]
    seeds: int
    problems: int
    note: str
    """What the intervals cover."""

    def at(self, metric: str, k: int) -> Json:
        """The entry of "pass" or "maj" at K."""
        return (self.passes if metric == "pass" else self.majorities)[k - 1]


@dataclass(frozen=True)
class Statistics:
    """Asks the evaluation room and remembers the answers; `key` is "base" or a method's key."""

    data: Comparison
    draws: int = DRAWS
    _known: dict[tuple[object, ...], Curves] = field(default_factory=dict)

    def level(self, tasks: Sequence[TaskData], key: str) -> Curves:
        """Pass@K and Maj@K of one model, averaged over tasks (and its seeds)."""
        return self._once(
            ("level", _names(tasks), key), lambda: suite_means([_curves(t, key) for t in tasks], draws=self.draws)
        )

    def gain(self, tasks: Sequence[TaskData], key: str) -> Curves:
        """Method minus base, paired by problem."""
        return self._once(
            ("gain", _names(tasks), key),
            lambda: suite_differences(
                [_curves(t, key) for t in tasks], [_curves(t, BASE) for t in tasks], draws=self.draws
            ),
        )

    def versus(self, tasks: Sequence[TaskData], a: Method, b: Method) -> Curves:
        """Method a minus method b, paired by problem and by seed where they share seeds."""
        ours, theirs = paired_seeds(a, b)
        return self._once(
            ("versus", _names(tasks), a.key, b.key),
            lambda: suite_differences(
                [_curves(t, a.key)[ours] for t in tasks], [_curves(t, b.key)[theirs] for t in tasks], draws=self.draws
            ),
        )

    def greedy(self, tasks: Sequence[TaskData], key: str, against_base: bool = False) -> Json | None:
        """Share of problems that the greedy response solves (or its change against the base); None if not drawn."""
        own, base = [_greedy(task, key) for task in tasks], [_greedy(task, BASE) for task in tasks]
        if any(curve is None for curve in [*own, *base]):
            return None
        found = (
            suite_differences(own, base, draws=self.draws)  # type: ignore[arg-type]
            if against_base
            else suite_means(own, draws=self.draws)  # type: ignore[arg-type]
        )
        return entry(found.intervals[0])

    def front(self, tasks: Sequence[TaskData], k: int) -> dict[str, ParetoPoint]:
        """The points (Pass@1, Pass@K) of the base and every method, by key."""
        keys = [BASE, *(method.key for method in self.data.methods)]
        points = pareto_average([{key: task.passes[key] for key in keys} for task in tasks], k, draws=self.draws)
        return {point.name: point for point in points}

    def cells_below(
        self, tasks: Sequence[TaskData], method: Method, ks: Sequence[int]
    ) -> tuple[int, NDArray[np.int64]]:
        """In how many cells (task, K) a method's Pass@K lies below the base's, and the same in every draw, [draws].

        The draws of several methods with equally many seeds see the same problems and seeds.
        """
        count, drawn = 0, np.zeros(self.draws, dtype=np.int64)
        columns = [k - 1 for k in ks]
        for stream, task in enumerate(tasks):
            change = (task.passes[method.key] - task.passes[BASE])[:, :, columns]
            count += int((change.mean(axis=(0, 1)) < 0).sum())
            drawn += (seed_draws(change, self.draws, 0, stream) < 0).sum(axis=1)
        return count, drawn

    def entropy_gain(
        self, tasks: Sequence[TaskData], method: Method, other: Method | None = None, kind: str = "own"
    ) -> Json | None:
        """Change of token entropy against the base (or against another method), averaged over tasks; None if unknown.

        `kind` "own": each model on its own responses; "base": on those of the base. Only tasks and problems that were
        measured for every model of the pair.
        """
        ours, theirs = paired_seeds(method, other) if other else (list(range(len(method.runs))), [])
        first: list[Floats] = []
        second: list[Floats] = []
        for task in tasks:
            sources = [_entropies(task.stores[method.key][i].entropy, kind) for i in ours]
            rivals = [_entropies(task.stores[other.key][i].entropy, kind) for i in theirs] if other else []
            tables = [*sources, *(rivals if other else [_entropies(task.base.entropy, "own")])]
            ids = [name for name in task.base.table.problem_ids if all(name in table for table in tables)]
            if ids:
                columns = np.array([[[table[name]] for name in ids] for table in tables], dtype=np.float64)
                first.append(columns[: len(sources)])
                second.append(columns[len(sources) :] if other else columns[-1])
        if not first:
            return None
        return entry(suite_differences(first, second, draws=self.draws).intervals[0])

    def base_entropy(self, tasks: Sequence[TaskData]) -> float | None:
        """Token entropy of the base on its own responses, averaged over the tasks where it was measured."""
        found = [task.base.entropy["own"]["value"] for task in tasks if task.base.entropy.get("own")]
        return float(np.mean(found)) if found else None

    def _once(self, key: tuple[object, ...], compute: object) -> Curves:
        if key not in self._known:
            assert callable(compute)
            self._known[key] = _split(compute())
        return self._known[key]


def paired_seeds(a: Method, b: Method) -> tuple[list[int], list[int]]:
    """Places of the seeds that both methods have; where they share none, as many as the shorter one has, in order."""
    shared = [seed for seed in a.seeds if seed in b.seeds]
    if shared:
        return [a.seeds.index(seed) for seed in shared], [b.seeds.index(seed) for seed in shared]
    places = list(range(min(len(a.seeds), len(b.seeds))))
    return places, places


def entry(interval: Interval) -> Json:
    """{value, low, high} of an interval."""
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _greedy(task: TaskData, key: str) -> Floats | None:
    """[problems, 1] of the base, [seeds, problems, 1] of a method."""
    stores = [task.base] if key == BASE else task.stores[key]
    tables = [store.greedy for store in stores]
    if any(table is None for table in tables):
        return None
    curves = np.stack([table.correct.astype(np.float64) for table in tables if table is not None])
    return curves[0] if key == BASE else curves


def _entropies(found: Json, kind: str) -> dict[str, float]:
    """Problem id -> nats, as entropy.json has them."""
    return found.get("problem_entropy", {}).get(kind) or {}


def _names(tasks: Sequence[TaskData]) -> tuple[str, ...]:
    return tuple(task.name for task in tasks)


def _curves(task: TaskData, key: str) -> Floats:
    """Pass@1..K, then Maj@1..K, side by side: one call gives the intervals of both."""
    return np.concatenate([task.passes[key], task.majorities[key]], axis=-1)


def _split(found: SeedIntervals) -> Curves:
    entries = tuple(entry(interval) for interval in found.intervals)
    half = len(entries) // 2
    return Curves(entries[:half], entries[half:], found.seeds, found.problems, found.note)
