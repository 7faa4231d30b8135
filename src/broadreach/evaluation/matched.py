"""Two runs compared where they are equally good: the pair of updates with the closest Pass@1, and Pass@K there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.seeds import SeedIntervals, seed_differences
from broadreach.evaluation.statistics import DRAWS, LEVEL, Floats
from broadreach.evaluation.summary import refuse_unlike
from broadreach.evaluation.table import SampleTable, load
from broadreach.runs.files import file_name
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """The updates of one pair of runs."""

    update_a: int
    update_b: int
    pass_at_1_a: float
    pass_at_1_b: float
    pass_at_1_base: float
    above_base: bool
    """Both lie above the base; otherwise no such pair exists."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Run a against run b at matched Pass@1; with several pairs of runs, one pair of updates each."""

    task: str
    pairs: tuple[MatchedPair, ...]
    differences: SeedIntervals
    """a - b for K = 1, 2, ...: at K = 1 what is left of the difference in Pass@1, then coverage."""
    against_base: tuple[SeedIntervals, SeedIntervals]
    """a - base and b - base on the same problems, at the same updates."""

    @property
    def note(self) -> str:
        """How to read it, in one line."""
        below = sum(not pair.above_base for pair in self.pairs)
        text = "the updates are chosen on the problems they are compared on, so the intervals do not cover that choice"
        return f"{text}; {below} of {len(self.pairs)} pairs do not lie above the base" if below else text


def curve_folder(run: str | Path, task: str) -> Path:
    """Where a run keeps the evaluations made during training on `task`, one folder `step-N` an update."""
    return Path(run) / "eval" / "curve" / file_name(task)


def curve_tables(run: str | Path, task: str) -> dict[int, SampleTable]:
    """Update -> its complete table, in order; UserError when the run was not evaluated during training."""
    found: dict[int, SampleTable] = {}
    for path in curve_folder(run, task).glob("step-*/samples.jsonl"):
        number = path.parent.name.removeprefix("step-")
        if number.isdigit() and (table := load(path)).complete:
            found[int(number)] = table
    if 0 not in found or len(found) < 2:
        raise UserError(
            f"{run}: no evaluations during training on {task} (update 0 and at least one other); "
            "train it with --set eval.curve_every=N"
        )
    return dict(sorted(found.items()))


def matched(
    a: str | Path, b: str | Path, task: str, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Matched:
    """Match two runs; UserError when either was not evaluated during training, or not on the same problems."""
    return matched_seeds([(a, b)], task, draws=draws, level=level, seed=seed)


def matched_seeds(
    runs: Sequence[tuple[str | Path, str | Path]],
    task: str,
    *,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Matched:
    """Match each pair of runs (one training seed each) by itself, then compare them with seeds as the outer level."""
    if not runs:
        raise UserError("matched Pass@1 needs at least one pair of runs")
    pairs: list[MatchedPair] = []
    chosen: list[tuple[Floats, Floats, Floats]] = []
    first: SampleTable | None = None
    for a, b in runs:
        tables_a, tables_b = curve_tables(a, task), curve_tables(b, task)
        first = first or tables_a[0]
        for table in (*tables_a.values(), *tables_b.values()):
            refuse_unlike(first, table)
        pair = choose(tables_a, tables_b)
        pairs.append(pair)
        picked = tables_a[pair.update_a], tables_b[pair.update_b], tables_a[0]
        chosen.append((pass_curve(picked[0].correct), pass_curve(picked[1].correct), pass_curve(picked[2].correct)))
    curves_a, curves_b, base = (np.stack(curves) for curves in zip(*chosen, strict=True))
    options = {"draws": draws, "level": level, "seed": seed}
    return Matched(
        task,
        tuple(pairs),
        seed_differences(curves_a, curves_b, **options),  # type: ignore[arg-type]
        (seed_differences(curves_a, base, **options), seed_differences(curves_b, base, **options)),  # type: ignore[arg-type]
    )


def choose(a: dict[int, SampleTable], b: dict[int, SampleTable]) -> MatchedPair:
    """The pair of updates (update 0 left out) with the closest Pass@1, both above the base when there is such a pair.

    Ties go to the better Pass@1, then to the earlier updates.
    """
    base = float(a[0].correct.mean())
    score_a = {step: float(table.correct.mean()) for step, table in a.items() if step}
    score_b = {step: float(table.correct.mean()) for step, table in b.items() if step}
    pairs = [
        MatchedPair(i, j, score_a[i], score_b[j], base, min(score_a[i], score_b[j]) > base)
        for i in score_a
        for j in score_b
    ]
    candidates = [pair for pair in pairs if pair.above_base] or pairs
    return min(
        candidates,
        key=lambda p: (
            round(abs(p.pass_at_1_a - p.pass_at_1_b), 12),
            -(p.pass_at_1_a + p.pass_at_1_b),
            p.update_a + p.update_b,
        ),
    )
