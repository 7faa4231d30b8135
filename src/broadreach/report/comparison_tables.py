"""The tables of a comparison, as the paper's 2, 3, 5 (Pass@K), 7 to 9 (Maj@K) and 10 (held-out change)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broadreach.evaluation.summary import Json
from broadreach.report.comparison_data import Comparison, TaskData
from broadreach.report.comparison_stats import BASE, Statistics
from broadreach.report.comparison_style import labels
from broadreach.report.paper_numbers import Paper
from broadreach.report.words import Verdict, interval, percent, points, points_interval, verdict

METRICS = {"pass": "Pass", "maj": "Maj"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One number with its interval, what its paired interval says, and the paper's number."""

    value: str
    interval: str
    verdict: Verdict | None
    paper: str
    numbers: Json
    """value, low, high: for the CSV file."""
    published: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one task, or of an average."""

    name: str
    detail: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """(measure, a cell a column)."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table; `name` is its file name."""

    name: str
    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]


def score_tables(data: Comparison, stats: Statistics, paper: Paper | None) -> list[Table]:
    """Pass@K and Maj@K of every task with averages; in the paper's Hard setting mathematics and the rest apart."""
    hard = paper is not None and paper.setting == "hard"
    numbers = {"pass": "3 and 5" if hard else "2", "maj": "8 and 9" if hard else "7"}
    found = []
    for metric, word in METRICS.items():
        ks = [k for k in data.ks if k > 1 or metric == "pass"]
        if not ks:
            continue
        groups = [_group(data, stats, paper, metric, ks, [task], task.name) for task in data.tasks]
        for tasks, name, key in _averages(data, hard):
            groups.append(_group(data, stats, paper, metric, ks, tasks, name, key))
        like = f", as in the paper's table {numbers[metric]}" if paper else ""
        caption = f"{word}@K in percent{like}. Marks: method against base, paired, by the 95% interval."
        columns = ("Base", *(method.label for method in data.methods))
        found.append(Table(f"{metric}-at-k", caption, columns, tuple(groups)))
    return found


def change_table(data: Comparison, stats: Statistics, paper: Paper | None) -> Table | None:
    """Held-out change, after minus before, averaged over tasks (the paper's Table 10); None without held-out tasks."""
    if not data.held_out:
        return None
    measures = [(metric, k) for metric in METRICS for k in data.ks if k > 1 or metric == "pass"]
    rows = []
    for metric, k in measures:
        cells = []
        for method in data.methods:
            change = stats.gain(data.held_out, method.key).at(metric, k)
            told = paper.held_out_change(method.name, metric, k) if paper else None
            cells.append(
                Cell(points(change["value"]), points_interval(change), verdict(change), _signed(told), change, told)
            )
        rows.append((f"{METRICS[metric]}@{k}", tuple(cells)))
    names = ", ".join(task.name for task in data.held_out)
    like = ", as in the paper's table 10" if paper else ""
    return Table(
        "held-out-change",
        f"Change on the held-out tasks in points, after minus before{like}; tasks weigh equally.",
        tuple(method.label for method in data.methods),
        (Group("Held out", names, tuple(rows)),),
    )


def table_csv(table: Table) -> list[list[Any]]:
    """Long form: task, measure, model, value, low, high, paper (percent); the first row is the header."""
    rows: list[list[Any]] = [["task", "measure", "model", "value", "low", "high", "paper_percent"]]
    for group in table.groups:
        for measure, cells in group.rows:
            for column, cell in zip(table.columns, cells, strict=True):
                numbers = [cell.numbers[part] for part in ("value", "low", "high")]
                rows.append([group.name, measure, column, *numbers, "" if cell.published is None else cell.published])
    return rows


def claim_rows(data: Comparison, stats: Statistics) -> list[list[Any]]:
    """Every paired difference against the base, all K: the file behind the verdicts."""
    names = labels(data)
    rows: list[list[Any]] = [["task", "metric", "k", "method", "difference", "low", "high"]]
    for task in data.tasks:
        for method in data.methods:
            found = stats.gain([task], method.key)
            for metric in METRICS:
                for k in range(1, data.samples + 1):
                    change = found.at(metric, k)
                    rows.append(
                        [task.name, metric, k, names[method.key], *(change[p] for p in ("value", "low", "high"))]
                    )
    return rows


def _averages(data: Comparison, hard: bool) -> list[tuple[Sequence[TaskData], str, str]]:
    """(tasks, name, the paper's name) of the averages worth showing."""
    found: list[tuple[Sequence[TaskData], str, str]] = []
    if hard:
        if len(data.targets) > 1:
            found.append((data.targets, "Average, mathematics", "average_math"))
    elif len(data.tasks) > 1:
        found.append((data.tasks, "Average, all tasks", "average"))
    if len(data.held_out) > 1:
        found.append((data.held_out, "Average, held out", "average_held_out"))
    return found


def _group(
    data: Comparison,
    stats: Statistics,
    paper: Paper | None,
    metric: str,
    ks: Sequence[int],
    tasks: Sequence[TaskData],
    name: str,
    key: str | None = None,
) -> Group:
    rows = []
    for k in ks:
        cells = [_cell(stats, paper, metric, k, tasks, BASE, "base", key or name)]
        cells += [_cell(stats, paper, metric, k, tasks, m.key, m.name, key or name) for m in data.methods]
        rows.append((f"{METRICS[metric]}@{k}", tuple(cells)))
    if metric == "pass" and (greedy := _greedy_row(data, stats, tasks)):
        rows.append(("Greedy", greedy))
    if key is not None:
        detail = f"{len(tasks)} tasks, equal weights"
    else:
        detail = f"{'trained on' if tasks[0].target else 'held out'}, {tasks[0].problems:,} problems"
    return Group(name, detail, tuple(rows))


def _cell(
    stats: Statistics,
    paper: Paper | None,
    metric: str,
    k: int,
    tasks: Sequence[TaskData],
    key: str,
    method: str,
    at: str,
) -> Cell:
    level = stats.level(tasks, key).at(metric, k)
    said = None if key == BASE else verdict(stats.gain(tasks, key).at(metric, k))
    told = paper.score(metric, method, at, k) if paper else None
    return Cell(percent(level["value"]), interval(level), said, "" if told is None else f"{told:.1f}%", level, told)


def _greedy_row(data: Comparison, stats: Statistics, tasks: Sequence[TaskData]) -> tuple[Cell, ...]:
    """One greedy response a problem, where every model has them; empty otherwise."""
    cells = []
    for key in (BASE, *(method.key for method in data.methods)):
        level, change = stats.greedy(tasks, key), stats.greedy(tasks, key, against_base=True)
        if level is None or change is None:
            return ()
        said = None if key == BASE else verdict(change)
        cells.append(Cell(percent(level["value"]), interval(level), said, "", level, None))
    return tuple(cells)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}".replace("-", "−")
