"""Scores along straight lines through weights: the ES update scaled, and from ES to GRPO."""

from __future__ import annotations

from broadreach.experiments.paper.files import csv_rows, ends, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry
from broadreach.runs.files import file_name


def _build(plan: PaperPlan) -> Found:
    study = plan.scale.easy[0]
    es, grpo = plan.runs(study, "es")[0], plan.runs(study, "grpo")[0]
    model = model_of(plan, study)
    lines = {
        f"{model}, base (0) to ES (1)": es / "analysis" / "path.csv",
        f"{model}, ES (0) to GRPO (1)": es / "analysis" / f"path-{file_name(grpo.name)}.csv",
    }
    entries = [
        Entry("ours", panel, f"Pass@{row['k']}", "Pass@K", *percent(ends(row)), x=float(row["t"]))
        for panel, path in lines.items()
        for row in csv_rows(path)
        if row["metric"] == "pass"
    ]
    return Found(tuple(entries), (), ("One seed; from the base, the place on the line is a factor on the ES update.",))


ITEM = Definition(
    "paths",
    "Along straight lines through the weights",
    "Not in the paper: whether base, ES and GRPO lie in one valley, and whether the ES update has the right length.",
    "lines",
    ("easy", "paths"),
    _build,
    x_label="place on the line",
)
