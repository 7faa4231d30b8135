"""Reward functions as users write them for TRL, loaded by import path in the tests."""

from __future__ import annotations

import asyncio
import math
from typing import Any

CALLS: list[dict[str, Any]] = []


def plain(completions: list[str], **kwargs: Any) -> list[float]:
    """TRL's first example: reward the length, plain strings."""
    CALLS.append({"completions": completions, **kwargs})
    return [float(len(completion)) for completion in completions]


def conversational(completions: list[list[dict[str, str]]], answer: list[str], **kwargs: Any) -> list[float]:
    """Chat completions, compared with a column of the data set."""
    CALLS.append({"completions": completions, "answer": answer, **kwargs})
    contents = [completion[0]["content"] for completion in completions]
    return [1.0 if gold in content else 0.0 for content, gold in zip(contents, answer, strict=True)]


async def slow(prompts: list[Any], completions: list[Any], **kwargs: Any) -> list[float]:
    """An asynchronous reward."""
    await asyncio.sleep(0.01)
    return [1.0] * len(completions)


class AsyncJudge:
    """A callable object whose call is asynchronous."""

    async def __call__(self, completions: list[Any], **kwargs: Any) -> list[float]:
        await asyncio.sleep(0)
        return [0.25] * len(completions)


judge = AsyncJudge()


def sometimes(completions: list[Any], **kwargs: Any) -> list[float | None]:
    """None: not for this reward function."""
    return [None if index % 2 else 1.0 for index in range(len(completions))]


def logs(completions: list[Any], log_extra: Any, log_metric: Any, trainer_state: Any, **kwargs: Any) -> list[float]:
    """Uses everything else that TRL passes."""
    log_extra("length", [len(completion) for completion in completions])
    log_metric("step", trainer_state.global_step)
    return [0.5] * len(completions)


def narrow(completions: list[Any]) -> list[float]:
    """Takes nothing but completions."""
    return [0.0 for _ in completions]


def as_array(completions: list[Any], **kwargs: Any) -> Any:
    """NumPy values."""
    import numpy as np

    return np.ones(len(completions), dtype=np.float32)


def nan(completions: list[Any], **kwargs: Any) -> list[float]:
    return [math.nan if index == 1 else 0.0 for index in range(len(completions))]


def infinite(completions: list[Any], **kwargs: Any) -> list[float]:
    return [math.inf] * len(completions)


def words(completions: list[Any], **kwargs: Any) -> list[str]:
    return ["good"] * len(completions)


def short(completions: list[Any], **kwargs: Any) -> list[float]:
    return [1.0] * (len(completions) - 1)


def single(completions: list[Any], **kwargs: Any) -> float:
    return 1.0


def broken(completions: list[Any], **kwargs: Any) -> list[float]:
    raise KeyError("answers")


not_a_function = 3
