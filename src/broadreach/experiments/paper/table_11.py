"""Table 11: Pass@1 of thresholded ES updates, Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.thresholds import published_thresholds
from broadreach.experiments.paper.weights import threshold_entries


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.easy
    return Found(threshold_entries(plan, studies), claims_of(plan, studies, "4c"))


ITEM = Definition(
    "table-11",
    "Pass@1 of thresholded ES updates, Easy setting",
    "Changes of at most tau are reset to the base; Pass@1 and its difference to the full update.",
    "table",
    ("easy", "easy threshold"),
    _build,
    lambda: published_thresholds("easy"),
)
