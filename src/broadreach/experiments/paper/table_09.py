"""Table 9: Maj@K on held-out tasks, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import held_out, is_held_out, published_scores, score_entries


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.hard
    return Found(score_entries(plan, studies, "maj", held_out))


ITEM = Definition(
    "table-9",
    "Maj@K on held-out tasks, Hard setting",
    "Majority voting over the first 16 and 32 responses on the held-out tasks.",
    "table",
    ("hard",),
    _build,
    lambda: published_scores("hard", "maj", is_held_out),
)
