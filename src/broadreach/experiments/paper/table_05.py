"""Table 5: Pass@K on held-out tasks, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import held_out, is_held_out, score_item

ITEM = score_item(
    "table-5",
    "Pass@K on held-out tasks, Hard setting",
    "Pass@1, 16 and 32 of the same models on GPQA, MBPP, CommonsenseQA and Countdown.",
    "hard",
    "pass",
    claims="6",
    ours=held_out,
    theirs=is_held_out,
)
