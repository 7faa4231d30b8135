"""What a claim about coverage must be held against: baselines of the base, equal budgets, equal Pass@1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broadreach.evaluation.matched import matched_seeds
from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.seeds import seed_differences, seed_means
from broadreach.evaluation.store import differing_keys
from broadreach.evaluation.summary import FREE_KEYS, Json
from broadreach.evaluation.table import load
from broadreach.report.comparison_data import Comparison, TaskData
from broadreach.report.comparison_stats import Statistics, entry, paired_seeds
from broadreach.report.words import Verdict, interval, percent, points, points_interval, verdict
from broadreach.runs.budget import match
from broadreach.types import UserError

MATCHINGS = ("updates", "responses", "tokens", "seconds")
_FREE = (*FREE_KEYS, "temperature", "noise_sigma")


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """One baseline of the untrained model on one task, and each method against it."""

    task: str
    name: str
    levels: tuple[tuple[str, str], ...]
    """(value, interval) for each K shown."""
    against: tuple[tuple[str, str, Verdict], ...]
    """Method minus baseline at the largest K: (points, interval, verdict), a column a method."""


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """ES minus GRPO at matched Pass@1."""

    name: str
    value: str
    interval: str
    verdict: Verdict


def baseline_rows(data: Comparison, stats: Statistics) -> tuple[list[BaselineRow], list[str]]:
    """Every finished baseline store of the runs, and notes about those left out."""
    rows: list[BaselineRow] = []
    notes: list[str] = []
    seen: set[tuple[str, str]] = set()
    for method in data.methods:
        for run in method.runs:
            for task in data.tasks:
                for path in _stores(run.path, task, run.target):
                    name = path.relative_to(run.path / "eval" / "baselines").parts[0]
                    if (task.name, name) in seen:
                        continue
                    seen.add((task.name, name))
                    row = _baseline(data, stats, task, name, path)
                    if isinstance(row, str):
                        notes.append(row)
                    else:
                        rows.append(row)
    return sorted(rows, key=lambda row: (row.task, row.name)), notes


def _stores(run: Path, task: TaskData, target: str) -> list[Path]:
    root = run / "eval" / "baselines"
    found = sorted(root.glob("*/samples.jsonl")) if task.name == target else []
    return found + [path for path in sorted(root.glob("*/*/samples.jsonl")) if path.parent.name == task.name]


def _baseline(data: Comparison, stats: Statistics, task: TaskData, name: str, path: Path) -> BaselineRow | str:
    try:
        table = load(path)
    except UserError as error:
        return f"baseline left out: {error}"
    other = differing_keys(task.base.table.header, table.header, allowed=_FREE)
    if other or not table.complete:
        return f"baseline {name} on {task.name} left out: {'; '.join(other) or 'unfinished'}"
    curve, top = pass_curve(table.correct), data.samples
    found = seed_means(curve, draws=stats.draws).intervals
    against = []
    for method in data.methods:
        change = entry(seed_differences(task.passes[method.key], curve, draws=stats.draws).intervals[top - 1])
        against.append((points(change["value"]), points_interval(change), verdict(change)))
    levels = tuple((percent(found[k - 1].value), interval(entry(found[k - 1]))) for k in data.ks)
    return BaselineRow(task.name, name.replace("-", " ", 1 if name[0] == "t" else 2), levels, tuple(against))


def budget_matches(data: Comparison) -> list[tuple[str, str]]:
    """(unit, sentence): at which update every method had spent what the thriftiest has, first seeds."""
    runs = [method.runs[0] for method in data.methods]
    lines = [run.metrics for run in runs]
    if len(runs) < 2 or not all(lines):
        return []
    names = [method.label for method in data.methods]
    found = []
    for unit in MATCHINGS:
        try:
            found.append((unit, match(lines, unit).sentence(names)))
        except (UserError, KeyError):
            continue
    return found


def matched_rows(data: Comparison, stats: Statistics) -> tuple[list[MatchedRow], str]:
    """ES against GRPO at the pair of updates with the closest Pass@1, and how to read it; empty when not measured."""
    es, grpo = data.first("es"), data.first("grpo")
    if not (es and grpo):
        return [], "Needs a run of ES and one of GRPO."
    pairs = [(es.runs[i].path, grpo.runs[j].path) for i, j in zip(*paired_seeds(es, grpo), strict=True)]
    rows: list[MatchedRow] = []
    reason = ""
    notes: list[str] = []
    for task in data.tasks:
        try:
            found = matched_seeds(pairs, task.name, draws=stats.draws)
        except UserError as error:
            reason = reason or str(error)
            continue
        at = ", ".join(
            f"ES update {p.update_a} ({percent(p.pass_at_1_a)}) and GRPO update {p.update_b} ({percent(p.pass_at_1_b)})"
            for p in found.pairs
        )
        notes.append(f"{task.name}: {at}; base {percent(found.pairs[0].pass_at_1_base)}. {found.note.capitalize()}.")
        sides = (
            (found.differences, "ES − GRPO"),
            (found.against_base[0], "ES − base"),
            (found.against_base[1], "GRPO − base"),
        )
        largest = len(found.differences.intervals)
        for k in sorted({*(k for k in data.ks if k <= largest), largest}):
            rows += [_matched(f"{task.name}, Pass@{k}, {what}", entry(side.at(k))) for side, what in sides]
    return rows, " ".join(notes) or reason


def _matched(name: str, change: Json) -> MatchedRow:
    return MatchedRow(name, points(change["value"]), points_interval(change), verdict(change))
