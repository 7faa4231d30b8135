"""AIME 2025: the 30 problems of the American Invitational Mathematics Examination I and II, answers 0 to 999.

Source: math-ai/aime25 (test 30). Licence: none of its own; problem text © MAA (keep it out of released packages).
Local layout: aime25/test.jsonl. Family: boxed_math; leading zeros do not matter.
At 30 problems a 95 % interval of Pass@1 is about 15 points wide on either side.
"""

from __future__ import annotations

from broadreach.tasks.competition import competition
from broadreach.tasks.dataset import DatasetTask
from broadreach.tasks.sources import Source, Where


def aime25(source: Where = "auto") -> DatasetTask:
    """AIME 2025, test split only."""
    return competition("aime25", Source(rows=30, hub="math-ai/aime25", local="aime25/test.jsonl"), source)
