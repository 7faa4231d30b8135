"""GSM8K (Cobbe et al. 2021): grade-school word problems with whole-number answers.

Source: openai/gsm8k, config main (train 7,473, test 1,319); the same rows as github.com/openai/grade-school-math.
Licence: MIT. Local layout: gsm8k/train.jsonl, gsm8k/test.jsonl.
Family: boxed_math; the gold is what follows `####`, thousands commas removed.
"""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Example, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_ANSWERS = (
    (
        "train-605",
        "Ivan has 20 dice. Jerry has twice as many dice as Ivan. How many dice do they have altogether?",
        "Jerry has 2 * 20 = 40 dice. Together they have 20 + 40 = 60. \\boxed{60}",
        "60",
    ),
    (
        "train-196",
        "Herbert is 10 years younger than Kris. If Kris is 24 years old now, how old will Herbert be next year?",
        "Herbert is 24 - 10 = 14 now. Next year he will be 14 + 1 = 15. \\boxed{15}",
        "15",
    ),
    (
        "train-207",
        "John volunteers at a shelter twice a month for 3 hours at a time.  How many hours does he volunteer per year?",
        "He goes 2 * 12 = 24 times a year. That is 24 * 3 = 72 hours. \\boxed{72}",
        "72",
    ),
    (
        "train-535",
        "Tim buys 3 dozen eggs.  Eggs cost $.50 each.  How much did he pay for eggs?",
        "He buys 3 * 12 = 36 eggs. They cost 36 * 0.5 = 18. \\boxed{18}",
        "18",
    ),
)


def gsm8k(source: Where = "auto") -> DatasetTask:
    """GSM8K with its own train and test splits."""
    return DatasetTask(
        name="gsm8k",
        family="boxed_math",
        splits={name: _split(name, rows) for name, rows in (("train", 7473), ("test", 1319))},
        instruction=MATH,
        licence="MIT",
        where=source,
        examples=_EXAMPLES,
    )


def _split(name: str, rows: int) -> Split:
    source = Source(rows=rows, hub="openai/gsm8k", config="main", split=name, local=f"gsm8k/{name}.jsonl")
    return Split(source, lambda index, row: _convert(name, index, row))


def _convert(split: str, index: int, row: Row) -> Problem:
    gold = text_of(row, "answer").rpartition("####")[2].strip().replace(",", "")
    return Problem(f"{split}-{index}", text_of(row, "question"), gold)


_EXAMPLES: tuple[Example, ...] = tuple(
    (Problem(identity, question, gold), answer) for identity, question, answer, gold in _ANSWERS
)
