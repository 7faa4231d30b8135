"""HotpotQA (Yang et al. 2018), distractor setting: ten passages, two of them needed, a short answer.

Source: hotpotqa/hotpot_qa, config distractor (train 90,447, validation 7,405); `test` is `validation`.
Licence: CC BY-SA 4.0. Local layout: hotpotqa/hotpot_distractor_sample100.jsonl (100 validation rows).
Family: answer_tag; exact match after the official normalisation decides, F1 is logged.
"""

from __future__ import annotations

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import QA
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_HUB = "hotpotqa/hotpot_qa"


def hotpotqa(source: Where = "auto") -> DatasetTask:
    """HotpotQA with context; locally a sample of 100 validation questions."""
    train = Source(rows=90447, hub=_HUB, config="distractor", split="train", local="hotpotqa/train.jsonl")
    validation = Source(
        rows=7405,
        hub=_HUB,
        config="distractor",
        split="validation",
        local="hotpotqa/hotpot_distractor_sample100.jsonl",
        local_rows=100,
    )
    return DatasetTask(
        name="hotpotqa",
        family="answer_tag",
        splits={"train": Split(train, _convert), "validation": Split(validation, _convert)},
        instruction=QA,
        licence="CC BY-SA 4.0",
        where=source,
        aliases={"test": "validation"},
    )


def _convert(index: int, row: Row) -> Problem:
    context = row["context"]
    passages = [
        f"[{number}] {title}\n{''.join(sentences).strip()}"
        for number, (title, sentences) in enumerate(zip(context["title"], context["sentences"], strict=True), start=1)
    ]
    question = "\n\n".join([*passages, f"Question: {text_of(row, 'question')}"])
    return Problem(text_of(row, "id"), question, text_of(row, "answer"), {"type": row.get("type")})
