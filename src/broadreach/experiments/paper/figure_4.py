"""Figure 4: Pass@1 against update sparsity."""

from __future__ import annotations

from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.thresholds import published_curves
from broadreach.experiments.paper.weights import threshold_curves


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.studies
    note = (
        "Controls: as many coordinates at random, as much energy at random, the largest ones. Lines are means over the "
        "seeds that have the control, bands the mean of their intervals over problems."
    )
    return Found(threshold_curves(plan, studies), (), (note,))


ITEM = Definition(
    "figure-4",
    "Pass@1 of sparsified ES updates",
    "Most coordinates of the ES update can be reset before Pass@1 falls.",
    "lines",
    ("easy", "hard", "easy threshold", "hard threshold"),
    _build,
    published_curves,
    "share of moved coordinates reset, percent",
)
