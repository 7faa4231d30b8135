"""Table 12: Pass@1 of thresholded ES updates, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.thresholds import published_thresholds
from broadreach.experiments.paper.weights import threshold_entries


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.hard
    return Found(threshold_entries(plan, studies), claims_of(plan, studies, "4c"))


ITEM = Definition(
    "table-12",
    "Pass@1 of thresholded ES updates, Hard setting",
    "Changes of at most tau are reset to the base; Pass@1 and its difference to the full update.",
    "table",
    ("hard", "hard threshold"),
    _build,
    lambda: published_thresholds("hard"),
)
