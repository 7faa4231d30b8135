"""What AIME and AMC share (`aime24`, `aime25`, `amc23`): a problem with a number as answer."""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem
from broadreach.verify.boxed import extract_boxed

LICENCE = "none of its own (text © MAA)"
"""MAA: the Mathematical Association of America."""


def competition(name: str, rows: Source, where: Where) -> DatasetTask:
    """A test-only task of problems whose answers are numbers."""
    return DatasetTask(
        name=name,
        family="boxed_math",
        splits={"test": Split(rows, lambda index, row: _convert(index, row))},
        instruction=MATH,
        licence=LICENCE,
        where=where,
    )


def _convert(index: int, row: Row) -> Problem:
    question = text_of(row, "problem") or text_of(row, "question")
    answer = text_of(row, "answer") or boxed_answer(text_of(row, "solution"))
    return Problem(f"test-{index}", question, answer.strip().removesuffix("^\\circ"))


def boxed_answer(solution: str) -> str:
    """The last boxed payload of a worked solution, or the whole text when nothing is boxed."""
    payload = extract_boxed(solution).payload
    return solution if payload is None else payload
