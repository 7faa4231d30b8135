"""Figure 5: smoothed training reward of every population, with the band of the raw rewards."""

from __future__ import annotations

import numpy as np

from broadreach.analysis.ema import band
from broadreach.experiments.paper.files import base_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.populations import reward_curves, smoothed
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries = []
    for population in plan.scale.populations:
        panel = base_of(plan, population)
        for size, rows in reward_curves(plan, population).items():
            middle = smoothed(rows).mean(axis=0)
            width = np.mean([band(row) for row in rows], axis=0)
            for update, (value, spread) in enumerate(zip(middle, width, strict=True), 1):
                ends = float(value - spread), float(value + spread)
                name = f"N = {size}"
                entries.append(Entry("ours", panel, name, "smoothed reward", float(value), *ends, update, "reward"))
    note = "Band: local standard deviation of raw minus smoothed over 21 updates, not an interval; means over seeds."
    return Found(tuple(entries), (), (note,))


ITEM = Definition(
    "figure-5",
    "Training reward by population",
    "Smoothed mean reward over updates for N = 8, 16, 32, 64: larger models need smaller populations. The paper's "
    "numbers at three updates are in Table 6.",
    "lines",
    ("population",),
    _build,
    x_label="update",
)
