"""SVAMP (Patel et al. 2021): one- and two-step word problems, for models that GSM8K is too hard for.

Source: github.com/arkilpatel/SVAMP (1,000 rows); on the Hub the same rows as ChilleD/SVAMP (train+test).
Licence: MIT. Local layout: svamp/SVAMP.json.
Split: 700 to train on, 300 to test; the test rows are the 300 smallest SHA-256 values of the row ids (`_SALT`), so the
split is the same for ever and does not depend on the file's order. It is not the Hub copy's own split.
Family: boxed_math; all answers are whole numbers.
"""

from __future__ import annotations

import hashlib

from broadreach.tasks.dataset import DatasetTask, Example, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_SALT = "broadreach svamp split 0: "
_TEST_ROWS = 300
_SOURCE = Source(rows=1000, hub="ChilleD/SVAMP", split="train+test", local="svamp/SVAMP.json")

_ANSWERS = (
    (
        "chal-110",
        "A chef had 58 apples. After making some pies, he had used 35. How many apples remained?",
        "58 - 35 = 23 apples remained. \\boxed{23}",
        "23",
    ),
    (
        "chal-104",
        "Faye was placing her pencils into 14 rows with 11 pencils in each row. How many pencils does she have?",
        "14 * 11 = 154 pencils. \\boxed{154}",
        "154",
    ),
    (
        "chal-325",
        "Edward spent $ 6 to buy books and $ 16 to buy pens. Now he has $ 19. "
        "How much did Edward have before he spent his money?",
        "He spent 6 + 16 = 22. Before that he had 22 + 19 = 41. \\boxed{41}",
        "41",
    ),
    (
        "chal-172",
        "Faye was placing 30 pencils into rows with 5 pencils in each row. How many rows could she make?",
        "30 / 5 = 6 rows. \\boxed{6}",
        "6",
    ),
)


def svamp(source: Where = "auto") -> DatasetTask:
    """SVAMP with the fixed split of 700 and 300."""
    return DatasetTask(
        name="svamp",
        family="boxed_math",
        splits={"train": Split(_SOURCE, _convert, _train), "test": Split(_SOURCE, _convert, _test)},
        instruction=MATH,
        licence="MIT",
        where=source,
        examples=_EXAMPLES,
    )


def _convert(index: int, row: Row) -> Problem:
    body, question = text_of(row, "Body").strip(), text_of(row, "Question").strip()
    ended = body[-1:] in (".", "!", "?")
    text = f"{body} {question}" if ended else f"{body.rstrip(' ,')}, {question[:1].lower()}{question[1:]}"
    answer = row.get("Answer")
    gold = text_of({"Answer": float(answer)}, "Answer") if isinstance(answer, str) else text_of(row, "Answer")
    return Problem(text_of(row, "ID"), text, gold)


def _test_ids(problems: list[Problem]) -> set[str]:
    ids = sorted((problem.id for problem in problems), key=_order)
    return set(ids[:_TEST_ROWS])


def _order(identity: str) -> str:
    return hashlib.sha256(f"{_SALT}{identity}".encode()).hexdigest()


def _train(problems: list[Problem]) -> list[Problem]:
    test = _test_ids(problems)
    return [problem for problem in problems if problem.id not in test]


def _test(problems: list[Problem]) -> list[Problem]:
    test = _test_ids(problems)
    return [problem for problem in problems if problem.id in test]


_EXAMPLES: tuple[Example, ...] = tuple(
    (Problem(identity, question, gold), answer) for identity, question, answer, gold in _ANSWERS
)
