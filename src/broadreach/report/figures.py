"""The figures of a run's report; each is None where the run has nothing to show for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from broadreach.evaluation.summary import Json
from broadreach.report.axes import log_k, percent_axis, update_axis
from broadreach.report.run_data import Pair, RunData
from broadreach.report.svg import Figure, Palette
from broadreach.report.words import percent, points, points_interval, seconds

PHASES = {"generation": "es", "verification": "good", "noise": "noise", "update": "extra", "other": "base"}
"""Phases of an update, and their colours."""


def all_figures(run: RunData) -> list[Figure]:
    """Every figure that this run has data for, in the order of the page; a curve needs at least two points."""
    pair = run.own if run.own is not None and run.own.samples > 1 else None
    made = [
        *([pass_profile(pair), pass_difference(pair), problem_shift(pair)] if pair else []),
        reward(run.metrics),
        drift(run),
        entropy(run.metrics),
        phases(run.metrics),
    ]
    return [figure for figure in made if figure is not None]


def reward(metrics: Sequence[Json]) -> Figure | None:
    """Mean reward with the members' range, accuracy and share in the required form, over updates."""
    if len(metrics) < 2:
        return None
    columns = _columns(metrics, ("step", "reward_mean", "reward_min", "reward_max", "accuracy", "format_rate"))

    def draw(axes: Any, palette: Palette) -> None:
        steps = columns["step"]
        band = {"color": palette["es"], "alpha": 0.16, "linewidth": 0}
        axes.fill_between(steps, columns["reward_min"], columns["reward_max"], label="all members", **band)
        axes.plot(steps, columns["reward_mean"], color=palette["es"], label="mean reward")
        axes.plot(steps, columns["accuracy"], color=palette["good"], linestyle="--", label="correct")
        axes.plot(steps, columns["format_rate"], color=palette["base"], linestyle=":", label="required form")
        _updates(axes, steps)
        axes.set_ylim(0, max(1.0, float(np.nanmax(columns["reward_max"]))))
        axes.legend(loc="best", ncols=2)

    first, last = metrics[0], metrics[-1]
    return Figure(
        "reward",
        "Reward over updates",
        f"Mean reward of the population, from {first['reward_mean']:.3f} at update {first['step']} to "
        f"{last['reward_mean']:.3f} at update {last['step']}; share of correct responses from "
        f"{percent(first['accuracy'])} to {percent(last['accuracy'])}.",
        columns,
        draw,
    )


def pass_profile(pair: Pair) -> Figure:
    """Pass@K of base and trained model for every K, with interval bands."""
    base, after = pair.before_summary["pass_at_k"], pair.after_summary["pass_at_k"]
    ks = [entry["k"] for entry in base]

    def draw(axes: Any, palette: Palette) -> None:
        for entries, colour, label in ((base, "base", "base"), (after, "es", "ES")):
            _band(axes, ks, entries, palette[colour])
            axes.plot(ks, [entry["value"] for entry in entries], color=palette[colour], label=label)
        log_k(axes, ks)
        percent_axis(axes)
        axes.set_ylim(0, 1)
        axes.legend(loc="lower right")

    return Figure(
        "pass-profile",
        "Pass@K, base against ES",
        f"Pass@K over K from 1 to {ks[-1]}: the base from {percent(base[0]['value'])} to {percent(base[-1]['value'])}, "
        f"ES from {percent(after[0]['value'])} to {percent(after[-1]['value'])}, with 95% bands.",
        {"k": ks, **_prefixed("base", base), **_prefixed("es", after)},
        draw,
    )


def pass_difference(pair: Pair) -> Figure:
    """Paired difference of Pass@K, ES minus base, for every K."""
    entries = pair.difference["pass_at_k"]
    ks = [entry["k"] for entry in entries]
    scaled = [{key: 100 * entry[key] for key in ("value", "low", "high")} for entry in entries]

    def draw(axes: Any, palette: Palette) -> None:
        axes.axhline(0, color=palette["muted"], linewidth=1)
        _band(axes, ks, scaled, palette["es"])
        axes.plot(ks, [entry["value"] for entry in scaled], color=palette["es"])
        log_k(axes, ks)
        axes.set_ylabel("percentage points")

    return Figure(
        "pass-difference",
        "Gain in Pass@K, ES minus base",
        f"Paired difference in points: {points(entries[0]['value'])} {points_interval(entries[0])} at K = 1, "
        f"{points(entries[-1]['value'])} {points_interval(entries[-1])} at K = {ks[-1]}.",
        {"k": ks, **_prefixed("difference", entries)},
        draw,
    )


def problem_shift(pair: Pair) -> Figure:
    """How many of M responses were correct before and after: one dot for all problems that share both counts."""
    before, after = pair.before.correct.sum(axis=1), pair.after.correct.sum(axis=1)
    cells, sizes = np.unique(np.stack([before, after]), axis=1, return_counts=True)
    top = pair.samples

    def draw(axes: Any, palette: Palette) -> None:
        axes.plot([0, top], [0, top], color=palette["muted"], linewidth=1, linestyle="--")
        area = 14 * np.minimum(sizes, 40)
        axes.scatter(cells[0], cells[1], s=area, color=palette["es"], alpha=0.45, linewidth=0, clip_on=False)
        axes.grid(True, axis="both")
        axes.set(xlabel=f"base: correct of {top}", ylabel=f"ES: correct of {top}", xlim=(0, top), ylim=(0, top))
        axes.set_xticks(_quarters(top), _quarters(top))
        axes.set_yticks(_quarters(top), _quarters(top))

    better, worse = int((after > before).sum()), int((after < before).sum())
    return Figure(
        "problems",
        "Problem by problem",
        f"Correct responses of {top} for each problem, base across and ES up: {better} problems better, {worse} worse, "
        f"{len(before) - better - worse} the same. Dots above the dashed line gained.",
        {"base_correct": cells[0].tolist(), "es_correct": cells[1].tolist(), "problems": sizes.tolist()},
        draw,
    )


def drift(run: RunData) -> Figure | None:
    """Relative L2 distance to the base, with what the same coefficients would do on unrelated directions."""
    rows = [row for row in run.metrics if row.get("drift") is not None]
    if len(rows) < 2:
        return None
    columns = _columns(rows, ("step", "drift"))
    walk = run.random_walk
    if walk and all(1 <= row["step"] <= len(walk) for row in rows):
        columns["noise_only"] = [walk[int(row["step"]) - 1] for row in rows]

    def draw(axes: Any, palette: Palette) -> None:
        axes.plot(columns["step"], columns["drift"], color=palette["es"], label="measured")
        if "noise_only" in columns:
            style = {"color": palette["noise"], "linestyle": "--", "label": "random walk"}
            axes.plot(columns["step"], columns["noise_only"], **style)
            axes.legend(loc="lower right")
        _updates(axes, columns["step"])
        percent_axis(axes)
        axes.set_ylim(bottom=0)

    predicted = f"; the random walk predicts {percent(columns['noise_only'][-1], 2)}" if "noise_only" in columns else ""
    return Figure(
        "drift",
        "Distance from the base weights",
        f"Relative L2 distance reaches {percent(rows[-1]['drift'], 2)} at update {rows[-1]['step']}{predicted}.",
        columns,
        draw,
    )


def entropy(metrics: Sequence[Json]) -> Figure | None:
    """Token entropy over updates, where it was measured."""
    rows = [row for row in metrics if row.get("entropy") is not None]
    if len(rows) < 2:
        return None
    columns = _columns(rows, ("step", "entropy"))

    def draw(axes: Any, palette: Palette) -> None:
        axes.plot(columns["step"], columns["entropy"], color=palette["es"])
        _updates(axes, columns["step"])
        axes.set_ylabel("nats per token")
        axes.set_ylim(bottom=0)

    return Figure(
        "entropy",
        "Token entropy of the policy",
        f"From {rows[0]['entropy']:.3f} nats at update {rows[0]['step']} to {rows[-1]['entropy']:.3f} at update "
        f"{rows[-1]['step']}.",
        columns,
        draw,
    )


def phases(metrics: Sequence[Json]) -> Figure | None:
    """Seconds of every update, split into phases."""
    rows = [row for row in metrics if row.get("seconds")]
    if not rows:
        return None
    columns: dict[str, list[Any]] = {"step": [row["step"] for row in rows]}
    for phase in PHASES:
        columns[phase] = [float(row["seconds"].get(phase, 0.0)) for row in rows]

    def draw(axes: Any, palette: Palette) -> None:
        steps = columns["step"]
        edges = [step - 0.5 for step in steps] + [steps[-1] + 0.5]
        floor = np.zeros(len(edges))
        for phase, colour in PHASES.items():
            values = np.array([*columns[phase], columns[phase][-1]])
            style = {"color": palette[colour], "linewidth": 0, "alpha": 0.9, "label": phase, "step": "post"}
            axes.fill_between(edges, floor, floor + values, **style)
            floor = floor + values
        _updates(axes, steps)
        axes.set_ylabel("seconds")
        axes.set_ylim(0, 1.3 * floor.max() or 1)
        axes.legend(loc="upper center", ncols=5, handlelength=0.8, columnspacing=0.8, handletextpad=0.3, fontsize=9)

    total = sum(sum(columns[phase]) for phase in PHASES)
    shares = ", ".join(f"{phase} {percent(sum(columns[phase]) / total if total else 0)}" for phase in PHASES)
    return Figure(
        "phases",
        "Seconds per update",
        f"{seconds(total / len(rows))} an update on average: {shares}.",
        columns,
        draw,
    )


def _columns(rows: Sequence[Json], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [float("nan") if row.get(name) is None else row[name] for row in rows] for name in names}


def _prefixed(name: str, entries: Sequence[Json]) -> dict[str, list[float]]:
    return {f"{name}_{key}": [entry[key] for entry in entries] for key in ("value", "low", "high")}


def _band(axes: Any, xs: Sequence[int], entries: Sequence[Json], colour: str) -> None:
    lows, highs = [entry["low"] for entry in entries], [entry["high"] for entry in entries]
    axes.fill_between(xs, lows, highs, color=colour, alpha=0.18, linewidth=0)


def _updates(axes: Any, steps: Sequence[int]) -> None:
    update_axis(axes)
    axes.set_xlim(min(steps) - 0.5, max(steps) + 0.5)


def _quarters(top: int) -> list[int]:
    return sorted({round(top * part / 4) for part in range(5)})
