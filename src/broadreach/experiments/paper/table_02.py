"""Table 2: Pass@K of base, ES, GRPO and both compositions in the Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import any_task, published_scores, score_entries


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.easy
    return Found(score_entries(plan, studies, "pass", any_task), claims_of(plan, studies, "1"))


ITEM = Definition(
    "table-2",
    "Pass@K, Easy setting",
    "Pass@1, 16 and 32 of three models on GSM8K and five held-out tasks, for the base, GRPO, ES and both compositions.",
    "table",
    ("easy",),
    _build,
    lambda: published_scores("easy", "pass", lambda task, role: True),
)
