"""Table 10: what training did to tasks it never saw."""

from __future__ import annotations

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import METHODS, claims_of, csv_rows, ends, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    found = []
    for study in plan.scale.easy:
        for row in csv_rows(plan.report(study) / "tables" / "held-out-change.csv"):
            panel = model_of(plan, study)
            found.append(Entry("ours", panel, row["model"], row["measure"], *percent(ends(row)), unit="points"))
    return Found(tuple(found), claims_of(plan, plan.scale.easy, "6"))


def _published() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            "published",
            row["model"],
            METHODS[row["method"]],
            row["metric"].capitalize(),
            float(row["value"]),
            unit="points",
        )
        for row in published_rows("heldout_change.csv")
    )


ITEM = Definition(
    "table-10",
    "Change on held-out tasks",
    "Pass@K and Maj@K after minus before, in points, averaged over the five held-out tasks of the Easy setting.",
    "table",
    ("easy",),
    _build,
    _published,
)
