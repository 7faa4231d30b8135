"""Countdown: combine three or four numbers, each exactly once, into a target.

Source: test HuggingFaceTB/Countdown-Task-GOLD (config test), train Jiayi-Pan/Countdown-Tasks-3to4 (490,364 rows).
Licence: none specified for these two; the local files are Apache-2.0 (github.com/Jiayi-Pan/TinyZero, liumy2010/UFT).
Local layout: countdown/tinyzero_{train,test}.parquet (8,001 and 2,001), countdown/uft_{train,test}.parquet (10,240 and
1,024), columns target and nums; choose with the option `variant`. Both pairs share 5 problems between train and test.
Family: countdown. The GOLD set brings its own messages; the local files' prompts are for base models, so they get ours.
"""

from __future__ import annotations

import re
from typing import Any

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import COUNTDOWN
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Message, Problem, UserError

_LOCAL_ROWS = {"tinyzero": {"train": 8001, "test": 2001}, "uft": {"train": 10240, "test": 1024}}
_TEST = {"hub": "HuggingFaceTB/Countdown-Task-GOLD", "config": "test", "rows": None}
_TRAIN = {"hub": "Jiayi-Pan/Countdown-Tasks-3to4", "rows": 490364}


def countdown(source: Where = "auto", variant: str = "tinyzero") -> DatasetTask:
    """Countdown with three or four numbers; locally the files of TinyZero or UFT."""
    if variant not in _LOCAL_ROWS:
        raise UserError(f"task countdown: variant = {variant!r}; choose {' or '.join(_LOCAL_ROWS)}")
    return DatasetTask(
        name="countdown",
        family="countdown",
        splits={"train": _split("train", variant, _TRAIN), "test": _split("test", variant, _TEST)},
        instruction=COUNTDOWN,
        licence="none specified (local files: Apache-2.0)",
        where=source,
        ask=_ask,
    )


def _split(split: str, variant: str, hub: dict[str, Any]) -> Split:
    local = f"countdown/{variant}_{split}.parquet"
    source = Source(**hub, split=split, local=local, local_rows=_LOCAL_ROWS[variant][split])
    return Split(source, lambda index, row: _convert(split, index, row))


def _convert(split: str, index: int, row: Row) -> Problem:
    numbers, target = [int(number) for number in row["nums"]], int(row["target"])
    data: dict[str, Any] = {"numbers": numbers, "target": target}
    own = _own_messages(row.get("prompt") or row.get("messages"))
    if own is not None:
        data["messages"] = own
    expression = re.search(r"<answer>(.*?)</answer>", text_of(row, "answer"), re.DOTALL)
    if expression is not None:
        data["expression"] = expression.group(1).strip()
    question = f"Numbers: {', '.join(map(str, numbers))}\nTarget: {target}"
    return Problem(f"{split}-{index}", question, str(target), data)


def _own_messages(turns: Any) -> list[Message] | None:
    """The data set's own system and user turns, unless they are one transcript for base models (TinyZero, UFT)."""
    if not isinstance(turns, list) or not turns or "A conversation between User and" in str(turns[0].get("content")):
        return None
    kept = [{"role": turn["role"], "content": turn["content"]} for turn in turns if turn["role"] != "assistant"]
    return kept or None


def _ask(problem: Problem) -> list[Message]:
    own = problem.data.get("messages")
    if own is not None:
        return [dict(turn) for turn in own]
    return [{"role": "system", "content": COUNTDOWN}, {"role": "user", "content": problem.question}]
