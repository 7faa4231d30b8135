"""Table 8: Maj@K on mathematics, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import is_target, score_item, target

ITEM = score_item(
    "table-8",
    "Maj@K on mathematics, Hard setting",
    "Majority voting over the first 16 and 32 responses on the mathematical tasks.",
    "hard",
    "maj",
    ours=target,
    theirs=is_target,
)
