"""The figures about the trained models: Pass@K profiles, gains over the base, Pareto fronts, held-out changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broadreach.evaluation.summary import Json
from broadreach.report.axes import log_k, percent_axis
from broadreach.report.comparison_data import Comparison, TaskData
from broadreach.report.comparison_stats import BASE, Statistics
from broadreach.report.comparison_style import Style, labels, styles
from broadreach.report.svg import Figure, Palette
from broadreach.report.words import percent, points, points_interval


def model_figures(data: Comparison, stats: Statistics) -> list[Figure]:
    """Two for each task, one for the averages, one for the held-out changes."""
    found: list[Figure] = []
    several = len(data.tasks) > 1
    for task in data.tasks:
        if data.samples > 1:
            found += [profile(data, stats, [task], task.name), gains(data, stats, task)]
    if data.samples > 1:
        places = [([task], task.name) for task in data.tasks] + ([(list(data.tasks), "all tasks")] if several else [])
        found += [front(data, stats, tasks, name) for tasks, name in places]
    if data.held_out:
        found.append(held_out(data, stats))
    return found


def profile(data: Comparison, stats: Statistics, tasks: Sequence[TaskData], name: str) -> Figure:
    """Pass@K of base and methods for every K, with interval bands."""
    keys, looks, names = [BASE, *(m.key for m in data.methods)], styles(data), labels(data)
    curves = {key: stats.level(tasks, key).passes for key in keys}
    ks = list(range(1, data.samples + 1))

    def draw(axes: Any, palette: Palette) -> None:
        for key in keys:
            band(axes, ks, curves[key], palette[looks[key].colour])
        for key in keys:
            line(axes, ks, [e["value"] for e in curves[key]], looks[key], palette, names[key], marks(ks))
        log_k(axes, ks)
        percent_axis(axes)
        axes.legend(loc="best", handlelength=3.2)

    said = "; ".join(f"{names[k]} {percent(curves[k][0]['value'])} to {percent(curves[k][-1]['value'])}" for k in keys)
    columns: dict[str, Sequence[Any]] = {"k": ks}
    for key in keys:
        columns.update(ends(names[key], curves[key]))
    return Figure(
        f"profile-{slug(name)}",
        f"Pass@K on {name}",
        f"From K = 1 to K = {ks[-1]}: {said}. Bands: 95%.",
        columns,
        draw,
    )


def gains(data: Comparison, stats: Statistics, task: TaskData) -> Figure:
    """Paired difference of Pass@K, method minus base, for every K."""
    looks, names = styles(data), labels(data)
    curves = {m.key: stats.gain([task], m.key).passes for m in data.methods}
    scaled = {key: [{part: 100 * e[part] for part in e} for e in entries] for key, entries in curves.items()}
    ks = list(range(1, data.samples + 1))

    def draw(axes: Any, palette: Palette) -> None:
        axes.axhline(0, color=palette["muted"], linewidth=1)
        for key, entries in scaled.items():
            band(axes, ks, entries, palette[looks[key].colour])
        for key, entries in scaled.items():
            line(axes, ks, [e["value"] for e in entries], looks[key], palette, names[key], marks(ks))
        log_k(axes, ks)
        axes.set_ylabel("points over the base")
        if len(scaled) > 1:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=min(4, len(scaled)), handlelength=3.2)

    said = "; ".join(
        f"{names[key]} {points(e[-1]['value'])} {points_interval(e[-1])} at K = {ks[-1]}" for key, e in curves.items()
    )
    columns: dict[str, Sequence[Any]] = {"k": ks}
    for key, entries in curves.items():
        columns.update(ends(names[key], entries))
    return Figure(
        f"gain-{slug(task.name)}",
        f"Gain in Pass@K on {task.name}",
        f"Method minus base, paired, in points: {said}. Bands: 95%.",
        columns,
        draw,
    )


def front(data: Comparison, stats: Statistics, tasks: Sequence[TaskData], name: str) -> Figure:
    """The plane (Pass@1, Pass@K) with each point's probability of being non-dominated."""
    keys, looks, names, top = [BASE, *(m.key for m in data.methods)], styles(data), labels(data), data.samples
    placed = stats.front(tasks, top)
    xs = {key: stats.level(tasks, key).at("pass", 1) for key in keys}
    ys = {key: stats.level(tasks, key).at("pass", top) for key in keys}

    def draw(axes: Any, palette: Palette) -> None:
        ordered = sorted((placed[k].pass_at_1, placed[k].pass_at_k) for k in keys if placed[k].front)
        axes.step(*zip(*ordered, strict=True), where="pre", color=palette["muted"], linewidth=1, zorder=1)
        for key in keys:
            point, x, y, colour = placed[key], xs[key], ys[key], palette[looks[key].colour]
            bars = {"xerr": [[x["value"] - x["low"]], [x["high"] - x["value"]]]}
            bars["yerr"] = [[y["value"] - y["low"]], [y["high"] - y["value"]]]
            axes.errorbar(point.pass_at_1, point.pass_at_k, **bars, color=colour, alpha=0.45, linewidth=1.1, zorder=2)
            style = {"marker": looks[key].marker, "color": colour, "linestyle": "none", "markersize": 8, "zorder": 3}
            face = colour if point.front else "none"
            axes.plot(point.pass_at_1, point.pass_at_k, **style, markerfacecolor=face, label=names[key])
            beside = {
                "textcoords": "offset points",
                "xytext": (7, 6),
                "fontsize": 9.5,
                "color": palette["ink"],
                "zorder": 4,
            }
            axes.annotate(percent(point.probability, 0), (point.pass_at_1, point.pass_at_k), **beside)
        percent_axis(axes)
        percent_axis(axes, "x")
        axes.grid(True, axis="both")
        axes.set(xlabel="Pass@1", ylabel=f"Pass@{top}")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)

    said = ", ".join(f"{names[key]} {percent(placed[key].probability, 0)}" for key in keys)
    columns: dict[str, Sequence[Any]] = {
        "model": [names[key] for key in keys],
        "pass_at_1": [placed[key].pass_at_1 for key in keys],
        f"pass_at_{top}": [placed[key].pass_at_k for key in keys],
        "on_front": [placed[key].front for key in keys],
        "probability_non_dominated": [placed[key].probability for key in keys],
    }
    return Figure(
        f"pareto-{slug(name)}",
        f"Pareto front on {name}",
        f"Pass@1 across, Pass@{top} up; filled points lie on the front, crosses are 95% intervals. "
        f"Beside each point: in how many of the joint bootstrap draws nothing dominates it ({said}).",
        columns,
        draw,
    )


def held_out(data: Comparison, stats: Statistics) -> Figure:
    """Change of Pass@K on every held-out task and their average: one row each, intervals as bars."""
    looks, names, top = styles(data), labels(data), data.samples
    places = [([task], task.name) for task in data.held_out]
    places += [(list(data.held_out), "average")] if len(data.held_out) > 1 else []
    found = {m.key: [stats.gain(tasks, m.key).at("pass", top) for tasks, _ in places] for m in data.methods}

    def draw(axes: Any, palette: Palette) -> None:
        axes.axvline(0, color=palette["muted"], linewidth=1)
        step = 0.7 / max(1, len(found))
        for order, (key, entries) in enumerate(found.items()):
            rows = [place + (order - (len(found) - 1) / 2) * step for place in range(len(places))]
            values = [100 * e["value"] for e in entries]
            errors = [
                [100 * (e["value"] - e["low"]) for e in entries],
                [100 * (e["high"] - e["value"]) for e in entries],
            ]
            style = {"fmt": looks[key].marker, "color": palette[looks[key].colour], "markersize": 6, "linewidth": 1.4}
            axes.errorbar(values, rows, xerr=errors, **style, label=names[key])
        axes.set_yticks(range(len(places)), [name for _, name in places])
        axes.invert_yaxis()
        axes.grid(True, axis="x")
        axes.grid(False, axis="y")
        axes.set_xlabel("points over the base")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=min(4, len(found)))

    said = "; ".join(f"{names[key]} {points(e[-1]['value'])} {points_interval(e[-1])}" for key, e in found.items())
    columns: dict[str, Sequence[Any]] = {"task": [name for _, name in places]}
    for key, entries in found.items():
        columns.update(ends(names[key], entries))
    last = "on average" if len(data.held_out) > 1 else f"on {places[0][1]}"
    return Figure(
        "held-out",
        f"Held-out change in Pass@{top}",
        f"Method minus base in points, paired; {last}: {said}.",
        columns,
        draw,
    )


def line(
    axes: Any, xs: Sequence[float], ys: Sequence[float], look: Style, palette: Palette, label: str, every: Any = None
) -> None:
    """One method's curve."""
    style = {"color": palette[look.colour], "linestyle": look.line, "marker": look.marker, "markersize": 5}
    axes.plot(xs, ys, **style, markevery=every, label=label)


def band(axes: Any, xs: Sequence[float], entries: Sequence[Json], colour: str) -> None:
    """An interval at every x."""
    lows, highs = [e["low"] for e in entries], [e["high"] for e in entries]
    axes.fill_between(xs, lows, highs, color=colour, alpha=0.14, linewidth=0)


def marks(ks: Sequence[int]) -> list[int]:
    """Places of the powers of two: where a curve shows its marker."""
    return [place for place, k in enumerate(ks) if k & (k - 1) == 0]


def ends(name: str, entries: Sequence[Json]) -> dict[str, list[float]]:
    """Columns of the CSV file: value, low and high of one method."""
    return {f"{name} {part}": [e[part] for e in entries] for part in ("value", "low", "high")}


def slug(name: str) -> str:
    """A task's name as part of a file name."""
    return "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
