"""Smoothed training rewards of several populations: what Table 6 and Figure 5 are drawn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.ema import debiased_ema
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Population
from broadreach.experiments.sweep_curves import reward_curve
from broadreach.runs.folder import RunFolder

Floats = NDArray[np.float64]


def reward_curves(plan: PaperPlan, population: Population) -> dict[int, Floats]:
    """Population N -> mean reward of every update, [seeds, updates]; FileNotFoundError while a run is missing."""
    sweep = plan.sweep(population)
    found = {}
    for size in population.sizes:
        rows = []
        for seed in population.seeds:
            run = RunFolder(sweep.run((str(size),), seed))
            curve = reward_curve(run)
            if curve is None:
                raise FileNotFoundError(2, "unfinished", str(run.path / "DONE"))
            rows.append(curve)
        shortest = min(map(len, rows))
        found[size] = np.array([row[:shortest] for row in rows])
    return found


def smoothed(curves: Floats) -> Floats:
    """The debiased exponential mean of every seed, [seeds, updates]."""
    return np.array([debiased_ema(curve) for curve in curves])
