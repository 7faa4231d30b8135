"""Table 8: Maj@K on mathematics, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import is_target, published_scores, score_entries, target


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.hard
    return Found(score_entries(plan, studies, "maj", target))


ITEM = Definition(
    "table-8",
    "Maj@K on mathematics, Hard setting",
    "Majority voting over the first 16 and 32 responses on the mathematical tasks.",
    "table",
    ("hard",),
    _build,
    lambda: published_scores("hard", "maj", is_target),
)
