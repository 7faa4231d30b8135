"""Table 2: Pass@K of base, ES, GRPO and both compositions in the Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import score_item

ITEM = score_item(
    "table-2",
    "Pass@K, Easy setting",
    "Pass@1, 16 and 32 of three models on GSM8K and five held-out tasks, for the base, GRPO, ES and both compositions.",
    "easy",
    "pass",
    claims="1",
)
