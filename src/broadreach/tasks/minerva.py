"""Minerva Math (Lewkowycz et al. 2022): 272 undergraduate science problems from MIT OpenCourseWare.

Source: math-ai/minervamath (test 272). Licence: problems CC BY-NC-SA 4.0 (MIT OpenCourseWare): non-commercial.
Local layout: minerva_math/test.jsonl (gold is the last box of the solution). Family: boxed_math; a number counts when
it is within 1 % of the gold (`TOLERANCE`), because golds are rounded physical values such as 4.5e33.
"""

from __future__ import annotations

import re

from broadreach.tasks.competition import boxed_answer
from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

TOLERANCE = 1e-2
"""Largest relative error of a right number."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def minerva(source: Where = "auto") -> DatasetTask:
    """Minerva Math, test split only."""
    rows = Source(rows=272, hub="math-ai/minervamath", local="minerva_math/test.jsonl")
    return DatasetTask(
        name="minerva",
        family="boxed_math",
        splits={"test": Split(rows, _convert)},
        instruction=MATH,
        licence="CC BY-NC-SA 4.0 (MIT OpenCourseWare)",
        where=source,
    )


def _convert(index: int, row: Row) -> Problem:
    question = text_of(row, "problem") or text_of(row, "question")
    gold = (text_of(row, "answer") or boxed_answer(text_of(row, "solution"))).strip()
    data = {"float_rel_tol": TOLERANCE} if _NUMBER.fullmatch(gold) else {}
    return Problem(f"test-{index}", question, gold, data)
