"""Table 6: smoothed training reward by population, and which population is adequate."""

from __future__ import annotations

import numpy as np

from broadreach.analysis.ema import TOLERANCE
from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import base_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.populations import Floats, reward_curves, smoothed
from broadreach.experiments.paper.scale import Population
from broadreach.experiments.paper.weights import over_seeds, share_over_seeds
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, UNMEASURED, Claim
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    claims: list[Claim] = []
    smallest: dict[str, int] = {}
    for population in plan.scale.populations:
        curves = {size: smoothed(rows) for size, rows in reward_curves(plan, population).items()}
        entries += _entries(base_of(plan, population), curves, population)
        claims.append(_claim(base_of(plan, population), curves, population))
        smallest[population.name] = _smallest(curves)
    claims.append(_sizes({base_of(plan, one): smallest[one.name] for one in plan.scale.populations}))
    return Found(tuple(entries), tuple(claims), ("Rewards, not percent; intervals are Student's t over seeds.",))


def _entries(panel: str, curves: dict[int, Floats], population: Population) -> list[Entry]:
    reference = curves[max(curves)]
    found = []
    for update in _marks(population, reference):
        for size, rows in curves.items():
            level = over_seeds(rows[:, update - 1].tolist())
            gap = over_seeds((rows[:, update - 1] - reference[:, update - 1]).tolist())
            found.append(Entry("ours", panel, f"update {update}", f"N = {size}", *level, unit="reward"))
            if size != max(curves):
                column = f"N = {size} minus N = {max(curves)}"
                found.append(Entry("ours", panel, f"update {update}", column, *gap, unit="reward"))
    for size, rows in curves.items():
        share = [float(np.mean(row >= best - TOLERANCE)) for row, best in zip(rows, reference, strict=True)]
        found.append(Entry("ours", panel, "updates at which N is adequate", f"N = {size}", *share_over_seeds(share)))
    return found


def _marks(population: Population, curves: Floats) -> list[int]:
    """The updates to show that the runs have; their last one where they have none."""
    return [mark for mark in population.marks if mark <= curves.shape[1]] or [curves.shape[1]]


def _claim(model: str, curves: dict[int, Floats], population: Population) -> Claim:
    """The paper: N = 32 is adequate at every update it shows, N = 8 at fewer the smaller the model."""
    half, top = sorted(curves)[-2:]
    last = _marks(population, curves[top])[-1] - 1
    gaps = [float(a[last] - b[last]) for a, b in zip(curves[half], curves[top], strict=True)]
    mean, low, high = over_seeds(gaps)
    statement = f"N = {half} is adequate: within {TOLERANCE} of N = {top} at the last update ({model})"
    said = f"Smoothed reward at update {last + 1}: N = {half} minus N = {top} is {mean:+.4f}"
    if low is None or high is None:
        return Claim("7c", statement, UNDECIDED, f"{said}; one seed, so there is no interval.")
    verdict = CONFIRMED if low >= -TOLERANCE else REFUTED if high < -TOLERANCE else UNDECIDED
    return Claim("7c", statement, verdict, f"{said} [{low:+.4f}, {high:+.4f}] over {len(gaps)} seeds.")


def _smallest(curves: dict[int, Floats]) -> int:
    """The smallest population that is adequate at the last update, on average over seeds."""
    best = float(curves[max(curves)][:, -1].mean())
    return min(size for size, rows in curves.items() if float(rows[:, -1].mean()) >= best - TOLERANCE)


def _sizes(smallest: dict[str, int]) -> Claim:
    """The paper: larger models need smaller populations. Its models are listed from small to large."""
    statement = "Larger models need smaller populations"
    said = ", ".join(f"{model}: N = {size}" for model, size in smallest.items())
    said = f"Smallest adequate population at the last update: {said}."
    if len(smallest) < 2:
        return Claim("7e", statement, UNMEASURED, f"{said} One model at this scale.")
    return Claim("7e", statement, UNDECIDED, f"{said} There is no interval to decide by.")


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
