"""GPQA Diamond (Rein et al. 2023): graduate-level questions, four options.

Source: Idavidrein/gpqa, config gpqa_diamond (198 rows, Hub split train, here `test`). Licence: CC BY 4.0, but gated:
its terms forbid publishing items. So this task is private: items are never printed, logged or cached in clear by this
package (ids are hashes of the question), and no stored copy is bundled. Local layout: gpqa/gpqa_diamond.csv.
Family: choice; the order of the options is fixed by a hash of the question, the same for every response.
"""

from __future__ import annotations

import hashlib

from broadreach.tasks.commonsense_qa import options_text
from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import CHOICE
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_LETTERS = "ABCD"
_COLUMNS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def gpqa(source: Where = "auto") -> DatasetTask:
    """GPQA Diamond (gated: needs your own access)."""
    rows = Source(
        rows=198,
        hub="Idavidrein/gpqa",
        config="gpqa_diamond",
        split="train",
        local="gpqa/gpqa_diamond.csv",
        gated=True,
    )
    return DatasetTask(
        name="gpqa",
        family="choice",
        splits={"test": Split(rows, _convert)},
        instruction=CHOICE,
        licence="CC BY 4.0, gated",
        where=source,
        private=True,
    )


def _convert(index: int, row: Row) -> Problem:
    stem = text_of(row, "Question").strip()
    answers = [text_of(row, column).strip() for column in _COLUMNS]
    order = sorted(range(4), key=lambda position: _hash(f"{stem}\n{position}"))
    options = {letter: answers[position] for letter, position in zip(_LETTERS, order, strict=True)}
    gold = _LETTERS[order.index(0)]
    return Problem(f"gpqa-{_hash(stem)[:12]}", f"{stem}\n\n{options_text(options)}", gold, {"options": options})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
