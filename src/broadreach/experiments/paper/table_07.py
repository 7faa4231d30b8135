"""Table 7: Maj@K in the Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.scores import score_item

ITEM = score_item(
    "table-7",
    "Maj@K, Easy setting",
    "Majority voting over the first 16 and 32 responses of the models and tasks of Table 2.",
    "easy",
    "maj",
)
