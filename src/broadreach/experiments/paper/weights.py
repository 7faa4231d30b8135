"""What the analyses of the weights left: distances, sparsities, thresholded checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from broadreach.evaluation.student import student_interval
from broadreach.experiments.paper.files import Ends, csv_rows, ends, json_object, model_of, percent
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.report.paper_item import Entry

CONTROLS = {
    "threshold": "smallest changes reset",
    "random-count": "as many at random",
    "random-energy": "as much energy at random",
    "keep-smallest": "largest changes reset",
}


def drifts(runs: Sequence[Path]) -> list[dict[str, Any]]:
    """`analyze drift` of every run."""
    return [json_object(run / "analysis" / "drift.json") for run in runs]


def over_seeds(values: Sequence[float]) -> Ends:
    """Mean over seeds, with Student's t interval where there are several."""
    if len(values) < 2:
        return float(values[0]), None, None
    found = student_interval(values)
    return found.value, found.low, found.high


def share_over_seeds(values: Sequence[float]) -> Ends:
    """As `over_seeds` for shares of one, in percent; the interval ends at 0 and at 100."""
    value, low, high = percent(over_seeds(values))
    return value, None if low is None else max(0.0, low), None if high is None else min(100.0, high)


def ratio_over_seeds(above: Sequence[float], below: Sequence[float]) -> Ends:
    """Geometric mean of ratios, paired by seed."""
    found = over_seeds([math.log(a / b) for a, b in zip(above, below, strict=True)])
    middle, low, high = (None if end is None else math.exp(end) for end in found)
    return middle, low, high


def null_ends(run: Path, statistic: str, part: str = "model", level: str = "model") -> Ends:
    """A statistic of the model or of a kind under noise alone, exact arithmetic; FileNotFoundError without analysis."""
    wanted = (level, part, statistic, "exact")
    for row in csv_rows(run / "analysis" / "null.csv"):
        if (row["level"], row["part"], row["statistic"], row["precision"]) == wanted:
            return ends(row)
    return None, None, None


def threshold_entries(plan: PaperPlan, studies: Sequence[Study]) -> tuple[Entry, ...]:
    """Pass@1 of thresholded updates: a panel for each model and control, a row a threshold.

    Columns: share of moved coordinates reset, length of the update that is left (both in percent of the full one),
    Pass@1, and its paired difference to the full update. Intervals are over problems, a panel a seed.
    """
    found: list[Entry] = []
    for study in studies:
        for seed, run in zip(study.seeds, plan.runs(study, "es"), strict=True):
            for row in _pass_at_1(run):
                control = row["control"]
                panel = f"{model_of(plan, study)}, seed {seed}"
                name = {"full": "full update", "base": "base"}.get(control, "")
                if not name:
                    panel += f", {CONTROLS[control]}"
                    name = f"tau {float(row['tau']):.3g}"
                found += _threshold_cells(panel, name, row)
    return tuple(found)


def threshold_curves(plan: PaperPlan, studies: Sequence[Study]) -> tuple[Entry, ...]:
    """Pass@1 (percent) against the share of coordinates reset: a line for each control, mean over the seeds it has."""
    found = []
    for study in studies:
        lines: dict[tuple[str, int], list[tuple[float, float, float, float]]] = {}
        for run in plan.runs(study, "es"):
            ranks: dict[str, int] = {}
            for row in _pass_at_1(run):
                rank = ranks[row["control"]] = ranks.get(row["control"], -1) + 1
                numbers = [100 * float(row[key]) for key in ("sparsity", "value", "low", "high")]
                lines.setdefault((row["control"], rank), []).append((numbers[0], numbers[1], numbers[2], numbers[3]))
        for (control, _), points in lines.items():
            x, value, low, high = np.mean(points, axis=0).tolist()
            name = CONTROLS.get(control, {"full": "full update", "base": "base"}.get(control, control))
            found.append(Entry("ours", model_of(plan, study), name, "Pass@1", value, low, high, x))
    return tuple(found)


def _pass_at_1(run: Path) -> Iterator[dict[str, str]]:
    for row in csv_rows(run / "analysis" / "threshold.csv"):
        if row["metric"] == "pass" and row["k"] == "1":
            yield row


def _threshold_cells(panel: str, name: str, row: dict[str, str]) -> list[Entry]:
    change = percent(ends(row, "minus_full", "minus_full_low", "minus_full_high"))
    left = 100 * math.sqrt(max(0.0, 1 - float(row["energy_removed"])))
    cells = [
        Entry("ours", panel, name, "reset", 100 * float(row["sparsity"])),
        Entry("ours", panel, name, "length left", left),
        Entry("ours", panel, name, "Pass@1", *percent(ends(row))),
    ]
    if change[0] is not None:
        cells.append(Entry("ours", panel, name, "minus full", *change, unit="points"))
    return cells
