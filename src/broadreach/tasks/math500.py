"""MATH-500 (Hendrycks et al. 2021, selection of Lightman et al. 2023): 500 competition problems with LaTeX answers.

Source: HuggingFaceH4/MATH-500 (test 500). Licence: MIT (hendrycks/math, openai/prm800k); problem text AoPS and MAA.
Local layout: math500/test.jsonl. Family: boxed_math.
"""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem


def math500(source: Where = "auto") -> DatasetTask:
    """MATH-500, test split only."""
    rows = Source(rows=500, hub="HuggingFaceH4/MATH-500", local="math500/test.jsonl")
    return DatasetTask(
        name="math500",
        family="boxed_math",
        splits={"test": Split(rows, _convert)},
        instruction=MATH,
        licence="MIT",
        where=source,
    )


def _convert(index: int, row: Row) -> Problem:
    return Problem(text_of(row, "unique_id"), text_of(row, "problem"), text_of(row, "answer"))
