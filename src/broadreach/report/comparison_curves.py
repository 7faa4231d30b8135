"""The figures over updates: training reward, evaluation during training, drift; and what each method cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from broadreach.evaluation.summary import Json
from broadreach.report.axes import percent_axis, update_axis
from broadreach.report.comparison_budget import QUANTITIES, budgets
from broadreach.report.comparison_data import Comparison
from broadreach.report.comparison_figures import line, slug
from broadreach.report.comparison_style import labels, styles
from broadreach.report.svg import Figure, Palette
from broadreach.report.words import number, percent

Point = tuple[float, float]
PHASES = ("generation", "verification", "noise", "update", "other")


def update_figures(data: Comparison) -> list[Figure]:
    """Every figure over updates and costs that the files have data for."""
    found: list[Figure | None] = [
        over_updates(data, "reward", "Training reward", _metric("reward_mean"), "mean reward of the update"),
    ]
    tasks = list(dict.fromkeys(str(row.get("task")) for m in data.methods for run in m.runs for row in run.curve))
    for task in tasks:
        title = f"Token entropy on {task}"
        found.append(over_updates(data, f"entropy-{slug(task)}", title, _curve(task, "entropy"), "nats a token"))
        for k in data.ks:
            read = _curve(task, "pass_at_1" if k == 1 else str(k))
            found.append(over_updates(data, f"pass{k}-{slug(task)}", f"Pass@{k} on {task}", read, "", shares=True))
    if not any(figure is not None and figure.name.startswith("entropy") for figure in found):
        title = "Token entropy in training"
        found.append(over_updates(data, "entropy-training", title, _metric("entropy"), "nats a token"))
    found += [drift(data), spent(data), phases(data)]
    return [figure for figure in found if figure is not None]


def over_updates(
    data: Comparison,
    name: str,
    title: str,
    read: Callable[[Any], list[Point]],
    unit: str,
    *,
    shares: bool = False,
    log: bool = False,
) -> Figure | None:
    """A thin line for each seed and a thick one for their mean; None unless some run has two points."""
    looks, names = styles(data), labels(data)
    series = {m.key: [points for run in m.runs if len(points := read(run)) > 1] for m in data.methods}
    series = {key: lines for key, lines in series.items() if lines}
    if not series:
        return None
    means = {key: mean_line(lines) for key, lines in series.items()}

    def draw(axes: Any, palette: Palette) -> None:
        for key, lines in series.items():
            for points in lines if len(lines) > 1 else []:
                axes.plot(*zip(*points, strict=True), color=palette[looks[key].colour], linewidth=0.8, alpha=0.35)
        for key, points in means.items():
            xs, ys = zip(*points, strict=True)
            line(axes, xs, ys, looks[key], palette, names[key], max(1, len(xs) // 6))
        update_axis(axes)
        axes.set_ylabel(unit)
        if shares:
            percent_axis(axes)
        if log:
            axes.set_yscale("log")
        axes.legend(loc="best", handlelength=3.2)

    show = percent if shares else number
    said = "; ".join(f"{names[key]} {show(line[0][1])} → {show(line[-1][1])}" for key, line in means.items())
    several = any(len(lines) > 1 for lines in series.values())
    columns: dict[str, list[Any]] = {"method": [], "seed_line": [], "update": [], "value": []}
    for key, lines in series.items():
        for place, points in enumerate([*lines, means[key]]):
            for x, y in points:
                for column, value in zip(columns.values(), (names[key], _line_name(place, lines), x, y), strict=True):
                    column.append(value)
    thin = " Thin lines: single seeds; thick: their mean." if several else ""
    return Figure(name, f"{title} over updates", f"{said}.{thin}", columns, draw)


def mean_line(lines: Sequence[list[Point]]) -> list[Point]:
    """Mean over the seeds at the updates that all of them have."""
    shared = set.intersection(*({x for x, _ in points} for points in lines))
    tables = [dict(points) for points in lines]
    return [(x, float(np.mean([table[x] for table in tables]))) for x in sorted(shared)] or list(lines[0])


def drift(data: Comparison) -> Figure | None:
    """Relative L2 distance from the base, on a logarithmic axis when the methods lie far apart."""
    ends = [row["drift"] for m in data.methods for run in m.runs for row in run.metrics[-1:] if row.get("drift")]
    far = bool(ends) and max(ends) > 8 * min(ends)
    return over_updates(data, "drift", "Distance from the base weights", _metric("drift"), "relative L2", log=far)


def spent(data: Comparison) -> Figure | None:
    """Every quantity of the budgets, as a share of the method that spent most of it."""
    looks, names, found = styles(data), labels(data), budgets(data)
    chosen = [(label, read) for label, read, _ in QUANTITIES if any(read(budget) for budget in found.values())]
    if not found or not chosen:
        return None
    shares = {
        key: [read(budget) / max(max(read(b) for b in found.values()), 1e-12) for _, read in chosen]
        for key, budget in found.items()
    }

    def draw(axes: Any, palette: Palette) -> None:
        height = 0.8 / len(shares)
        for order, (key, values) in enumerate(shares.items()):
            rows = [place + (order - (len(shares) - 1) / 2) * height for place in range(len(chosen))]
            colour = palette[looks[key].colour]
            axes.barh(rows, values, height * 0.86, color=colour, label=names[key], hatch=_HATCH[order % len(_HATCH)],
                      edgecolor=palette["grid"], linewidth=0.3)  # fmt: skip
        axes.set_yticks(range(len(chosen)), [label for label, _ in chosen])
        axes.invert_yaxis()
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
        axes.set_xlim(0, 1)
        percent_axis(axes, "x")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=min(4, len(shares)))

    columns: dict[str, Sequence[Any]] = {"quantity": [label for label, _ in chosen]}
    columns.update({names[key]: [read(budget) for _, read in chosen] for key, budget in found.items()})
    return Figure(
        "budgets",
        "What each method spent",
        "Mean over seeds, as a share of the method that spent most; the table has the amounts.",
        columns,
        draw,
    )


def phases(data: Comparison) -> Figure | None:
    """Seconds by phase, stacked, one bar a method."""
    names, found = labels(data), budgets(data)
    found = {key: budget for key, budget in found.items() if budget.get("seconds")}
    if not found:
        return None
    kinds = [name for name in PHASES if any(budget["seconds"].get(name) for budget in found.values())]
    rest = {name for b in found.values() for name, value in b["seconds"].items() if value} - {
        *PHASES,
        "total",
        "evaluation",
    }
    kinds += sorted(rest)
    colours = ("es", "good", "noise", "extra", "base", "muted", "ink", "grid")

    def draw(axes: Any, palette: Palette) -> None:
        left = np.zeros(len(found))
        for place, kind in enumerate(kinds):
            values = np.array([float(budget["seconds"].get(kind, 0.0)) for budget in found.values()])
            style = {"color": palette[colours[place % len(colours)]], "edgecolor": palette["grid"], "linewidth": 0.3}
            axes.barh(
                range(len(found)), values, 0.62, left=left, **style, label=kind, hatch=_HATCH[place % len(_HATCH)]
            )
            left = left + values
        axes.set_yticks(range(len(found)), [names[key] for key in found])
        axes.invert_yaxis()
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
        axes.set_xlabel("seconds")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)

    columns: dict[str, Sequence[Any]] = {"phase": kinds}
    columns.update({names[k]: [b["seconds"].get(kind, 0.0) for kind in kinds] for k, b in found.items()})
    return Figure("phases", "Training seconds by phase", "Mean over seeds.", columns, draw)


_HATCH = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")


def _metric(key: str) -> Callable[[Any], list[Point]]:
    return lambda run: [(float(row["step"]), float(row[key])) for row in run.metrics if row.get(key) is not None]


def _curve(task: str, key: str) -> Callable[[Any], list[Point]]:
    """A value of curve.jsonl by update; a number names a K of pass_at_k."""

    def value(row: Json) -> Json | None:
        found = row.get("pass_at_k", {}).get(key) if key.isdigit() else row.get(key)
        return found if isinstance(found, dict) else None

    def read(run: Any) -> list[Point]:
        rows = [(row, value(row)) for row in run.curve if row.get("task") == task]
        return sorted((float(row["step"]), float(found["value"])) for row, found in rows if found)

    return read


def _line_name(place: int, lines: Sequence[Any]) -> str:
    return "mean" if place == len(lines) else str(place)
