"""What the published in-place arithmetic alone does: the same seeds and coefficients, exactly and in bfloat16."""

from __future__ import annotations

from broadreach.experiments.paper.files import csv_rows, ends, json_object, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry

SHOWN = ("model", "norm")


def _build(plan: PaperPlan) -> Found:
    study = plan.scale.easy[0]
    place, model = plan.runs(study, "es")[0] / "analysis", model_of(plan, study)
    entries: list[Entry] = []
    for row in csv_rows(place / "precision.csv"):
        if row["part"] in SHOWN:
            name, panel = f"{row['precision']} arithmetic", f"{model}, {row['part']}"
            entries += [
                Entry("ours", panel, name, "relative L2", 100 * float(row["relative_l2"])),
                Entry("ours", panel, name, "largest change", float(row["max_change"]), unit="ratio"),
                Entry("ours", panel, name, "of the top 100", 100 * float(row["of_top_100"])),
            ]
    for row in json_object(place / "precision.json")["scores"]:
        if row["metric"] == "pass":
            found = percent(ends(row))
            name = f"{row['precision']} arithmetic"
            entries.append(Entry("ours", f"{model}, model", name, f"Pass@{row['k']}", *found))
    return Found(tuple(entries), (), ("Replayed from the ledger in bfloat16 from the rounded base; no new rewards.",))


ITEM = Definition(
    "precision",
    "The published arithmetic against the exact one",
    "The paper's trainer perturbs, restores and updates bfloat16 weights in place; what that alone does is not stated.",
    "table",
    ("easy", "precision"),
    _build,
)
