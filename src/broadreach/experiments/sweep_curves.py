"""Training rewards of a sweep over updates: raw, smoothed, with their band, and which populations are adequate."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.ema import adequate, band, debiased_ema
from broadreach.experiments.sweep import SweepPlan
from broadreach.report.files import csv_text
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder

POPULATION = "es.population"
Curve = NDArray[np.float64]


def reward_curve(run: RunFolder) -> Curve | None:
    """Mean reward of every update of a finished run, [updates]; None while it is not finished."""
    if not run.is_done():
        return None
    lines = run.metrics_file.read_text(encoding="utf-8").splitlines()
    return np.array([float(json.loads(line)["reward_mean"]) for line in lines])


def write_curves(plan: SweepPlan, failed: Collection[str] = ()) -> list[Path]:
    """Write curves.csv, and adequate.csv where the grid has several populations; returns what was written.

    curves.csv: update, reward, smoothed (debiased exponential mean, weight 0.99), band (Figure 5). adequate.csv: per
    population the share of updates within 0.01 of the largest one, and from which update on (Table 6).
    """
    keys = [key for key, _ in plan.grid]
    curves: dict[tuple[tuple[str, ...], int], Curve] = {}
    for point in plan.points():
        for seed in plan.seeds:
            run = RunFolder(plan.run(point, seed))
            curve = None if run.path.name in failed else reward_curve(run)
            if curve is not None:
                curves[point, seed] = curve
    rows: list[list[Any]] = [[*keys, "seed", "update", "reward", "smoothed", "band"]]
    for (point, seed), curve in curves.items():
        columns = zip(curve, debiased_ema(curve), band(curve), strict=True)
        rows += [[*point, seed, at, *(f"{value:.6g}" for value in line)] for at, line in enumerate(columns, 1)]
    written = [plan.folder / "curves.csv"]
    write_atomically(written[0], csv_text(rows))
    if POPULATION in keys and len(dict(plan.grid)[POPULATION]) > 1:
        written.append(plan.folder / "adequate.csv")
        write_atomically(written[1], csv_text(_adequacy(keys, curves)))
    return written


def _adequacy(keys: list[str], curves: Mapping[tuple[tuple[str, ...], int], Curve]) -> list[list[Any]]:
    """A row a run: its settings, against the largest population with the same other settings and seed."""
    place = keys.index(POPULATION)
    others = [key for key in keys if key != POPULATION]
    groups: dict[tuple[tuple[str, ...], int], dict[int, Curve]] = defaultdict(dict)
    for (point, seed), curve in curves.items():
        rest = tuple(value for index, value in enumerate(point) if index != place)
        groups[rest, seed][int(point[place])] = curve
    rows: list[list[Any]] = [[*others, "seed", POPULATION, "reference", "adequate_share", "adequate_from", "last_gap"]]
    for (rest, seed), group in groups.items():
        for population, one in adequate(group).items():
            gap = f"{one.gap[-1]:.6g}"
            rows.append([*rest, seed, population, max(group), f"{one.share:.4g}", one.first or "", gap])
    return rows
