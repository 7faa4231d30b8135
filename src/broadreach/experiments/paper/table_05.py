"""Table 5: Pass@K on held-out tasks, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import held_out, is_held_out, published_scores, score_entries


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.hard
    return Found(score_entries(plan, studies, "pass", held_out), claims_of(plan, studies, "6"))


ITEM = Definition(
    "table-5",
    "Pass@K on held-out tasks, Hard setting",
    "Pass@1, 16 and 32 of the same models on GPQA, MBPP, CommonsenseQA and Countdown.",
    "table",
    ("hard",),
    _build,
    lambda: published_scores("hard", "pass", is_held_out),
)
