"""Table 4: how far ES and GRPO move the weights, and how sparse the ES update is, with a null model beside."""

from __future__ import annotations

import math

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import claims_of, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.experiments.paper.taus import published_run, published_spread, study_taus
from broadreach.experiments.paper.weights import drifts, null_ends, over_seeds, ratio_over_seeds, share_over_seeds
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.studies
    entries = [entry for study in studies for entry in _rows(plan, study)]
    return Found((*entries, *_closed_form()), claims_of(plan, studies, "4a", "4b"), _notes(plan))


def _rows(plan: PaperPlan, study: Study) -> list[Entry]:
    panel = model_of(plan, study)
    es, grpo = (drifts(plan.runs(study, method)) for method in ("es", "grpo"))
    far = [float(one["model"]["relative_l2"]) for one in es]
    near = [float(one["model"]["relative_l2"]) for one in grpo]
    found = [
        Entry("ours", panel, "ES", "relative L2", *percent(over_seeds(far))),
        Entry("ours", panel, "GRPO", "relative L2", *percent(over_seeds(near))),
        Entry("ours", panel, "ES / GRPO", "relative L2", *ratio_over_seeds(far, near), unit="ratio"),
    ]
    found += _null(panel, plan, study, "relative_l2", "relative L2")
    for index, tau in enumerate(study_taus(plan, study)):
        column = f"s(tau = {tau:.3g})"
        for name, runs in (("ES", es), ("GRPO", grpo)):
            shares = [list(one["model"]["sparsity"].values())[index] for one in runs]
            found.append(Entry("ours", panel, name, column, *share_over_seeds(shares)))
        found += _null(panel, plan, study, f"s_{float(f'{tau:.4g}'):g}", column)
    return found


def _null(panel: str, plan: PaperPlan, study: Study, statistic: str, column: str) -> list[Entry]:
    found = percent(null_ends(plan.runs(study, "es")[0], statistic))
    return [Entry("ours", panel, "noise alone (ES)", column, *found)]


def _closed_form() -> list[Entry]:
    """erf(tau / (sd sqrt 2)) at the published settings."""
    panel = "published settings, noise alone in exact arithmetic"
    found = []
    for setting, name in (("easy", "Easy"), ("hard", "Hard")):
        scale = published_spread(setting) * math.sqrt(2)
        label = f"closed form, {name} (T = {published_run(setting).updates})"
        found += [
            Entry("ours", panel, label, f"s(tau = {tau:g})", 100 * math.erf(tau / scale))
            for tau in (1e-3, 1.5e-3, 2e-3)
        ]
    return found


def _published() -> tuple[Entry, ...]:
    found = []
    for row in published_rows("drift.csv"):
        panel = row["model"]
        found += [
            Entry("published", panel, "ES", "relative L2", float(row["es_rel_l2_x100"])),
            Entry("published", panel, "GRPO", "relative L2", float(row["grpo_rel_l2_x100"])),
            Entry("published", panel, "ES / GRPO", "relative L2", float(row["ratio"]), unit="ratio"),
        ]
        for tau in ("1e-3", "1.5e-3", "2e-3"):
            value = float(row[f"tau_{tau}_sparsity_percent"])
            found.append(Entry("published", panel, "ES", f"s(tau = {float(tau):g})", value))
            left = float(row[f"tau_{tau}_rel_l2_x100"])
            found.append(Entry("published", panel, "ES", f"relative L2 beyond {float(tau):g}", left))
    return tuple(found)


def _notes(plan: PaperPlan) -> tuple[str, ...]:
    scaled_taus = any(study_taus(plan, study)[0] != 2.5e-4 for study in plan.scale.studies)
    note = (
        "Our thresholds are the published ones times the ratio of alpha sqrt(T / N), the distance that noise alone "
        "moves a coordinate: noise alone then has the same sparsities as at the published settings.",
    )
    return note if scaled_taus else ()


ITEM = Definition(
    "table-4",
    "Distance from the base and sparsity of the update",
    "Relative L2 (15) of GRPO and ES, their ratio, and update sparsity (16) of ES at three thresholds.",
    "table",
    ("easy", "hard", "easy weights", "hard weights"),
    _build,
    _published,
)
