"""Normalisation and estimator at equal evaluations (claim 7), and what sigma the reward can see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.seeds import seed_differences, seed_means
from broadreach.evaluation.statistics import Floats
from broadreach.evaluation.table import load
from broadreach.experiments.paper.files import csv_rows, ends, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.variants import plan_variants, variant_run
from broadreach.report.claims import Claim, rises
from broadreach.report.comparison_stats import entry
from broadreach.report.paper_item import Entry

Z_SCORE = "z-score, one-point"


def _build(plan: PaperPlan) -> Found:
    curves = _curves(plan)
    panel = model_of(plan, plan.scale.easy[0])
    samples = next(iter(curves.values())).shape[2]
    entries = []
    for name, found in curves.items():
        level, change = seed_means(found), seed_differences(found, curves[Z_SCORE])
        for k in (1, samples):
            one, other = level.at(k), change.at(k)
            entries.append(Entry("ours", panel, name, f"Pass@{k}", 100 * one.value, 100 * one.low, 100 * one.high))
            if name != Z_SCORE:
                against = (100 * other.value, 100 * other.low, 100 * other.high)
                entries.append(Entry("ours", panel, name, f"Pass@{k} minus z-score", *against, unit="points"))
    return Found((*entries, *_probe(plan)), _claims(curves), NOTES)


NOTES = (
    "Equal evaluations and equal expected length of a step (ranks and two-point); raw rewards, whose scale is their "
    "own, get three step sizes, and the claim is held against the best of them, which favours raw rewards.",
)


def _curves(plan: PaperPlan) -> dict[str, Floats]:
    """Pass@K of every variant on the training task, [seeds, problems, K]."""
    study, seeds = plan.scale.easy[0], plan.scale.settings_seeds
    runs: dict[str, list[Path]] = {Z_SCORE: [plan.study(study).run("es", seed) for seed in seeds]}
    for variant in plan_variants(plan):
        runs[variant.label] = [variant_run(plan, variant, seed) for seed in seeds]
    return {name: np.stack([_passes(run) for run in paths]) for name, paths in runs.items()}


def _passes(run: Path) -> Floats:
    path = run / "eval" / "final" / "samples.jsonl"
    if not path.exists():
        raise FileNotFoundError(2, "missing", str(path))
    return pass_curve(load(path).correct)


def _claims(curves: dict[str, Floats]) -> tuple[Claim, ...]:
    raw = max((name for name in curves if name.startswith("raw")), key=lambda name: curves[name][:, :, 0].mean())
    two = next(name for name in curves if name.startswith("two-point"))
    found = []
    for number_, statement, other in (
        ("7a", "z-scored rewards beat raw rewards (Pass@1)", raw),
        ("7b", "two-point has no advantage at equal evaluations (Pass@1)", two),
    ):
        change = seed_differences(curves[Z_SCORE], curves[other]).at(1)
        said = f"{100 * change.value:+.1f} points [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"
        found.append(Claim(number_, statement, rises(entry(change)), f"z-score minus {other}: {said}."))
    return tuple(found)


def _probe(plan: PaperPlan) -> Sequence[Entry]:
    panel = "sigma probe before training"
    found = []
    for row in csv_rows(plan.folder / "probe" / "probe.csv"):
        name = f"sigma {float(row['sigma']):g}"
        spread = Entry("ours", panel, name, "spread of the members' reward", float(row["spread"]), unit="reward")
        share = percent(ends(row, "share", "share_low", "share_high"))
        found += [spread, Entry("ours", panel, name, "confirmed by a second batch", *share)]
    return found


ITEM = Definition(
    "settings",
    "Normalisation, estimator and sigma",
    "The paper says that z-scoring beats raw rewards and that two-point estimation gives no advantage.",
    "table",
    ("easy", "settings", "probe"),
    _build,
)
