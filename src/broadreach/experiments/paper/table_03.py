"""Table 3: Pass@K on mathematics, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scores import is_target, published_scores, score_entries, target


def _build(plan: PaperPlan) -> Found:
    studies = plan.scale.hard
    return Found(score_entries(plan, studies, "pass", target), claims_of(plan, studies, "1"))


ITEM = Definition(
    "table-3",
    "Pass@K on mathematics, Hard setting",
    "Pass@1, 16 and 32 of DeepSeek-R1-Distill-Qwen-1.5B on AIME24, AIME25, AMC23 and MATH-500.",
    "table",
    ("hard",),
    _build,
    lambda: published_scores("hard", "pass", is_target),
)
