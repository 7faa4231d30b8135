"""CommonsenseQA (Talmor et al. 2019): five options, common knowledge.

Source: tau/commonsense_qa (train 9,741, validation 1,221); the public test split has no labels, so `test` is
`validation`. Licence: MIT. Local layout (AI2): commonsense_qa/train_rand_split.jsonl, dev_rand_split.jsonl.
Family: choice; the vote is the letter, because some items have two identical options.
"""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import CHOICE
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_FILES = (("train", "train_rand_split", 9741), ("validation", "dev_rand_split", 1221))


def commonsense_qa(source: Where = "auto") -> DatasetTask:
    """CommonsenseQA with its train and validation splits."""
    return DatasetTask(
        name="commonsense_qa",
        family="choice",
        splits={split: _split(split, file, rows) for split, file, rows in _FILES},
        instruction=CHOICE,
        licence="MIT",
        where=source,
        aliases={"test": "validation"},
    )


def options_text(options: dict[str, str]) -> str:
    """The options as `A. text` lines."""
    return "\n".join(f"{letter}. {text}" for letter, text in options.items())


def _split(split: str, file: str, rows: int) -> Split:
    source = Source(rows=rows, hub="tau/commonsense_qa", split=split, local=f"commonsense_qa/{file}.jsonl")
    return Split(source, _convert)


def _convert(index: int, row: Row) -> Problem:
    """Reads the AI2 layout (nested question) and the Hub's (parallel lists of labels and texts)."""
    if isinstance(row["question"], dict):
        stem, choices = row["question"]["stem"], row["question"]["choices"]
        options = {choice["label"]: choice["text"] for choice in choices}
    else:
        stem, choices = row["question"], row["choices"]
        options = dict(zip(choices["label"], choices["text"], strict=True))
    question = f"{stem}\n\n{options_text(options)}"
    return Problem(text_of(row, "id"), question, text_of(row, "answerKey"), {"options": options})
