"""Table 12: Pass@1 of thresholded ES updates, Hard setting."""

from __future__ import annotations

from broadreach.experiments.paper.thresholds import threshold_item

ITEM = threshold_item("table-12", "hard")
