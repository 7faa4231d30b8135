"""Table 3: Pass@K on mathematics, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import is_target, score_item, target

ITEM = score_item(
    "table-3",
    "Pass@K on mathematics, Hard setting",
    "Pass@1, 16 and 32 of DeepSeek-R1-Distill-Qwen-1.5B on AIME24, AIME25, AMC23 and MATH-500.",
    "hard",
    "pass",
    claims="1",
    ours=target,
    theirs=is_target,
)
