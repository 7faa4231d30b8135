"""Table 7: Maj@K in the Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import any_task, published_scores, score_entries


def _build(plan: PaperPlan) -> Found:
    return Found(score_entries(plan, plan.scale.easy, "maj", any_task))


ITEM = Definition(
    "table-7",
    "Maj@K, Easy setting",
    "Majority voting over the first 16 and 32 responses of the models and tasks of Table 2.",
    "table",
    ("easy",),
    _build,
    lambda: published_scores("easy", "maj", lambda task, role: True),
)
