"""AMC 2023: 40 problems of the American Mathematics Competitions 12, answers are numbers.

Source: math-ai/amc23 (test 40); not the 83 problems of AI-MO/aimo-validation-amc that other suites call "amc".
Licence: none of its own; problem text © MAA (keep it out of released packages).
Local layout: amc23/test.jsonl. Family: boxed_math; golds are stored as floats (27.0).
"""

from __future__ import annotations

from broadreach.tasks.competition import competition
from broadreach.tasks.dataset import DatasetTask
from broadreach.tasks.sources import Source, Where


def amc23(source: Where = "auto") -> DatasetTask:
    """AMC 2023, test split only."""
    return competition("amc23", Source(rows=40, hub="math-ai/amc23", local="amc23/test.jsonl"), source)
