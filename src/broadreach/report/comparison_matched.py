"""Every method where it had spent what the thriftiest run spent in all: Pass@K of the evaluations during training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from broadreach.evaluation.matched import curve_folder
from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.seeds import SeedIntervals, seed_differences, seed_means
from broadreach.evaluation.statistics import Floats
from broadreach.evaluation.summary import Json, refuse_unlike
from broadreach.evaluation.table import SampleTable, load
from broadreach.report.comparison_data import Comparison, Method
from broadreach.report.comparison_runs import RunRecord
from broadreach.report.comparison_stats import Statistics, entry, paired_seeds
from broadreach.report.words import Verdict, count, interval, percent, points, points_interval, seconds, verdict
from broadreach.runs.budget import Budget, Matching, of_line
from broadreach.types import UserError

HOW = "train with --set eval.curve_every=N"


@dataclass(frozen=True, slots=True)
class MatchedMethod:
    """One method at the last evaluated updates within a budget."""

    label: str
    updates: tuple[int, ...]
    """Of each seed; empty where some seed was not evaluated within the budget."""
    spent: float
    """Mean over its seeds, in the unit of the budget."""
    levels: Mapping[int, Json]
    """K -> Pass@K with its interval."""


@dataclass(frozen=True, slots=True)
class MatchedBudget:
    """All methods within one budget, on one task."""

    task: str
    unit: Matching
    amount: float
    """What the run that spent least has spent."""
    ks: tuple[int, ...]
    methods: tuple[MatchedMethod, ...]
    versus: str
    """Label of the difference, ES − GRPO."""
    differences: Mapping[int, Json]
    """K -> their paired difference; empty where one of them is missing."""
    note: str
    """What the intervals cover."""


class _Stores:
    """Each store of an evaluation during training, read once."""

    def __init__(self) -> None:
        self.tables: dict[Path, SampleTable] = {}

    def passes(self, run: RunRecord, task: str, step: int) -> Floats:
        """[problems, K]; UserError when the stores of a task are not alike."""
        path = curve_folder(run.path, task) / f"step-{step}" / "samples.jsonl"
        if path not in self.tables:
            if not path.exists():
                raise UserError(f"{path} is missing, although {run.path / 'curve.jsonl'} names it: restore it")
            table = load(path)
            refuse_unlike(next((t for t in self.tables.values() if t.header.task == table.header.task), table), table)
            self.tables[path] = table
        return pass_curve(self.tables[path].correct)


def matched_budgets(data: Comparison, stats: Statistics) -> tuple[list[MatchedBudget], list[str]]:
    """A row for each task and unit, and notes about the methods left out and how to get them."""
    tasks = dict.fromkeys(str(row.get("task")) for m in data.methods for run in m.runs for row in run.curve)
    if not tasks:
        return [], [f"No run was evaluated during training: {HOW}."]
    found: list[MatchedBudget] = []
    notes: list[str] = []
    for task in tasks:
        shown = [m for m in data.methods if all(run.metrics and _evaluated(run, task) for run in m.runs)]
        lacking = ", ".join(m.label for m in data.methods if m not in shown)
        if lacking:
            notes.append(f"{lacking}: not every run was evaluated on {task} during training ({HOW}).")
        stores = _Stores()
        try:
            units = get_args(Matching) if len(shown) > 1 else ()
            found += [_match(data, stats, stores, shown, task, unit) for unit in units]
        except UserError as error:
            notes.append(f"{task}: {error}.")
        except KeyError as error:
            notes.append(f"{task}: some metrics.jsonl has no {error}.")
    notes += list(dict.fromkeys(f"{one.task}: {one.note}." for one in found))
    return found, notes


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One line of the page: a method, or the difference of two."""

    label: str
    update: str
    spent: str
    cells: tuple[tuple[str, str, Verdict | None], ...]
    """(value, interval, what the interval of a difference says), a cell for each K; empty: not evaluated in time."""


def budget_lines(row: MatchedBudget) -> list[BudgetLine]:
    """The methods, then ES − GRPO."""
    word = seconds if row.unit == "seconds" else count
    found = []
    for one in row.methods:
        first, last = min(one.updates, default=0), max(one.updates, default=0)
        update = (str(first) if first == last else f"{first} to {last}") + " (the base)" * (last == 0)
        cells = tuple((percent(s["value"]), interval(s), None) for s in one.levels.values())
        found.append(BudgetLine(one.label, update, word(one.spent), cells))
    changes = tuple((points(s["value"]), points_interval(s), verdict(s)) for s in row.differences.values())
    return [*found, BudgetLine(row.versus, "", "", changes)] if changes else found


def budget_heading(row: MatchedBudget) -> str:
    """The task, the unit and the amount, in words."""
    word = seconds if row.unit == "seconds" else count
    name = "generated tokens" if row.unit == "tokens" else row.unit
    amount = word(row.amount) if row.unit == "seconds" else f"{word(row.amount)} {name}"
    return f"{row.task}, {amount}"


def matched_budget_csv(rows: Sequence[MatchedBudget]) -> list[list[Any]]:
    """Long form; the first row is the header."""
    lines: list[list[Any]] = [
        ["task", "matched_by", "budget", "method", "updates", "spent", "k", "value", "low", "high"]
    ]
    for row in rows:
        sides = [(one.label, " ".join(map(str, one.updates)), one.spent, one.levels) for one in row.methods]
        for label, updates, spent, scores in [*sides, (row.versus, "", "", row.differences)]:
            for k, score in scores.items():
                ends = [score[end] for end in ("value", "low", "high")]
                lines.append([row.task, row.unit, row.amount, label, updates, spent, k, *ends])
    return lines


def _match(
    data: Comparison, stats: Statistics, stores: _Stores, methods: Sequence[Method], task: str, unit: Matching
) -> MatchedBudget:
    spent = {run.path: _spent(run, unit) for method in methods for run in method.runs}
    amount = min(max(amounts.values()) for amounts in spent.values())
    curves: dict[str, Floats] = {}
    made: list[tuple[Method, tuple[int, ...], float]] = []
    for method in methods:
        steps = [_last(run, task, spent[run.path], amount) for run in method.runs]
        within = tuple(step for step in steps if step is not None)
        if len(within) < len(steps):
            made.append((method, (), 0.0))
            continue
        pairs = list(zip(method.runs, within, strict=True))
        curves[method.key] = np.stack([stores.passes(run, task, step) for run, step in pairs])
        made.append((method, within, float(np.mean([spent[run.path][step] for run, step in pairs]))))
    samples = min((curve.shape[-1] for curve in curves.values()), default=1)
    ks = tuple(sorted({*(k for k in data.ks if k <= samples), 1, samples}))
    means = {key: seed_means(curve, draws=stats.draws) for key, curve in curves.items()}
    versus, differences = _versus(data, stats, curves)
    return MatchedBudget(
        task,
        unit,
        amount,
        ks,
        tuple(MatchedMethod(m.label, steps, cost, _at(means.get(m.key), ks)) for m, steps, cost in made),
        versus,
        _at(differences, ks),
        next((found.note for found in means.values()), ""),
    )


def _versus(data: Comparison, stats: Statistics, curves: Mapping[str, Floats]) -> tuple[str, SeedIntervals | None]:
    """ES minus GRPO, paired by problem and seed."""
    es, grpo = data.first("es"), data.first("grpo")
    if not (es and grpo and es.key in curves and grpo.key in curves):
        return "ES − GRPO", None
    ours, theirs = paired_seeds(es, grpo)
    found = seed_differences(curves[es.key][ours], curves[grpo.key][theirs], draws=stats.draws)
    return f"{es.label} − {grpo.label}", found


def _at(found: SeedIntervals | None, ks: Sequence[int]) -> dict[int, Json]:
    return {} if found is None else {k: entry(found.at(k)) for k in ks}


def _spent(run: RunRecord, unit: Matching) -> dict[int, float]:
    """Update -> what the run had spent after it, 0 included."""
    found, budget = {0: 0.0}, Budget()
    for line in run.metrics:
        budget = budget + of_line(line)
        found[int(line["step"])] = budget.spent(unit)
    return found


def _evaluated(run: RunRecord, task: str) -> list[int]:
    return [int(row["step"]) for row in run.curve if row.get("task") == task]


def _last(run: RunRecord, task: str, spent: Mapping[int, float], amount: float) -> int | None:
    """The last evaluated update within the amount; None without one."""
    within = [step for step in _evaluated(run, task) if spent.get(step, np.inf) <= amount * (1 + 1e-9)]
    return max(within, default=None)
