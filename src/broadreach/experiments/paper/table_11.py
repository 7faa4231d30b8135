"""Table 11: Pass@1 of thresholded ES updates, Easy setting."""

from __future__ import annotations

from broadreach.experiments.paper.thresholds import threshold_item

ITEM = threshold_item("table-11", "easy")
