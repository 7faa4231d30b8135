"""Table 6: smoothed training reward by population, and which population is adequate."""

from __future__ import annotations

import numpy as np

from broadreach.analysis.ema import TOLERANCE
from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.populations import Floats, model_of, reward_curves, smoothed
from broadreach.experiments.paper.scale import Population
from broadreach.experiments.paper.weights import over_seeds
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, Claim
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    claims: list[Claim] = []
    for population in plan.scale.populations:
        curves = {size: smoothed(rows) for size, rows in reward_curves(plan, population).items()}
        entries += _entries(model_of(plan, population), curves, population)
        claims.append(_claim(model_of(plan, population), curves, population))
    return Found(tuple(entries), tuple(claims), ("Rewards, not percent; intervals resample the seeds alone.",))


def _entries(panel: str, curves: dict[int, Floats], population: Population) -> list[Entry]:
    reference = curves[max(curves)]
    found = []
    for update in population.marks:
        for size, rows in curves.items():
            level = over_seeds(rows[:, update - 1].tolist())
            gap = over_seeds((rows[:, update - 1] - reference[:, update - 1]).tolist())
            found.append(Entry("ours", panel, f"update {update}", f"N = {size}", *level, unit="reward"))
            if size != max(curves):
                column = f"N = {size} minus N = {max(curves)}"
                found.append(Entry("ours", panel, f"update {update}", column, *gap, unit="reward"))
    for size, rows in curves.items():
        share = [float(np.mean(row >= best - TOLERANCE)) for row, best in zip(rows, reference, strict=True)]
        mean, low, high = over_seeds([100 * one for one in share])
        found.append(Entry("ours", panel, "updates at which N is adequate", f"N = {size}", mean, low, high))
    return found


def _claim(model: str, curves: dict[int, Floats], population: Population) -> Claim:
    """The paper: N = 32 is adequate at every update it shows, N = 8 at fewer the smaller the model."""
    half, top = sorted(curves)[-2:]
    last = population.marks[-1] - 1
    gaps = [float(a[last] - b[last]) for a, b in zip(curves[half], curves[top], strict=True)]
    mean, low, high = over_seeds(gaps)
    statement = f"N = {half} is adequate: within {TOLERANCE} of N = {top} at the last update ({model})"
    said = f"Smoothed reward at update {last + 1}: N = {half} minus N = {top} is {mean:+.4f}"
    if low is None or high is None:
        return Claim("7c", statement, UNDECIDED, f"{said}; one seed, so there is no interval.")
    verdict = CONFIRMED if low >= -TOLERANCE else REFUTED if high < -TOLERANCE else UNDECIDED
    return Claim("7c", statement, verdict, f"{said} [{low:+.4f}, {high:+.4f}] over {len(gaps)} seeds.")


def _published() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            "published",
            row["model"],
            f"update {row['update']}",
            f"N = {row['population']}",
            float(row["smoothed_reward"]),
            unit="reward",
        )
        for row in published_rows("population.csv")
    )


ITEM = Definition(
    "table-6",
    "Smoothed training reward by population",
    "Debiased exponential mean (weight 0.99) of the mean reward for N = 8, 16, 32, 64 at three updates; a population "
    "is adequate where it lies within 0.01 of N = 64.",
    "table",
    ("population",),
    _build,
    _published,
)
