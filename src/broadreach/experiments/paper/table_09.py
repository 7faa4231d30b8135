"""Table 9: Maj@K on held-out tasks, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import held_out, is_held_out, score_item

ITEM = score_item(
    "table-9",
    "Maj@K on held-out tasks, Hard setting",
    "Majority voting over the first 16 and 32 responses on the held-out tasks.",
    "hard",
    "maj",
    ours=held_out,
    theirs=is_held_out,
)
