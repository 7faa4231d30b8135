"""Problems from (family, split, index): disjoint by construction, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import xxhash
from numpy.random import Generator

from broadreach.types import FinishReason, Message, Problem, Score, UserError
from broadreach.verify import grade

Draw: TypeAlias = tuple[str, str, dict[str, Any]]
"""(question, gold, data) of one problem."""
Drawer: TypeAlias = Callable[[Generator, int], Draw]
"""Draws one problem of a level (0 is the easiest)."""

SIZES = {"train": 4096, "test": 1000, "heldout": 1000}
"""Problems of each split; `corpus` (what the bundled model was pretrained on) has no end."""
_BUCKETS = {"train": range(4), "test": range(4, 6), "heldout": range(6, 8), "corpus": range(8, 16)}


def bucket(key: str) -> int:
    """Which of 16 buckets a problem belongs to; each split owns some, so no two splits share a problem."""
    return xxhash.xxh3_64_intdigest(key.encode()) % 16


def generator(*key: str | int) -> Generator:
    """The generator of one key; equal keys give equal numbers."""
    return np.random.default_rng([xxhash.xxh3_64_intdigest(str(part).encode()) for part in key])


def _draw(name: str, split: str, rng: Generator, level: int, draw: Drawer) -> Draw:
    """One problem of `split`: draws until one falls into the buckets of the split."""
    while True:
        found = draw(rng, level)
        if bucket(name + str(found[2].get("key", found[0]))) in _BUCKETS[split]:
            return found


@lru_cache(maxsize=64)
def _split(name: str, split: str, levels: tuple[int, ...], draw: Drawer) -> tuple[Problem, ...]:
    seen: set[str] = set()
    out: list[Problem] = []
    for index in range(SIZES[split]):
        rng = generator(name, split, index)
        while True:
            question, gold, data = _draw(name, split, rng, levels[index % len(levels)], draw)
            if question not in seen:
                break
        seen.add(question)
        out.append(Problem(f"{name}/{split}/{index}", question, gold, data))
    return tuple(out)


def problems(name: str, split: str, levels: Sequence[int], draw: Drawer) -> list[Problem]:
    """All problems of `split`, no two with the same text; level `levels[index % len(levels)]` at each index.

    Raises UserError for an unknown split.
    """
    if split not in SIZES:
        raise UserError(f"task {name} has no split {split!r}: use one of {', '.join(SIZES)}")
    return list(_split(name, split, tuple(levels), draw))


def corpus(name: str, levels: Sequence[int], draw: Drawer, seed: int = 0) -> Iterator[Problem]:
    """Endless pretraining problems, in no other split; may repeat. Level `levels[index % len(levels)]`."""
    rng = generator(name, "corpus", seed)
    index = 0
    while True:
        question, gold, data = _draw(name, "corpus", rng, levels[index % len(levels)], draw)
        yield Problem(f"{name}/corpus/{index}", question, gold, data)
        index += 1


def ask(problem: Problem) -> list[Message]:
    """The question as the only turn: the bundled model has learnt each family's form of answer."""
    return [{"role": "user", "content": problem.question}]


def pick(rng: Generator, items: Sequence[Any]) -> Any:
    """One item, each equally likely."""
    return items[int(rng.integers(len(items)))]


def shuffled(rng: Generator, items: Sequence[Any]) -> list[Any]:
    """The items in random order."""
    return [items[int(i)] for i in rng.permutation(len(items))]


def examples(
    held_out: Sequence[Problem], answer: Callable[[Problem, str, Generator], str]
) -> list[tuple[Problem, str]]:
    """The first eight held-out problems with a worked answer, for `shots`."""
    return [(problem, answer(problem, "worked", generator(problem.id))) for problem in held_out[:8]]


def verdict(family: str, problem: Problem, text: str, finish_reason: str | None) -> Score:
    """The verifier's score of one response."""
    reason: FinishReason | None = "length" if finish_reason == "length" else "stop" if finish_reason else None
    return grade(family, text, problem.gold, problem.data, finish_reason=reason)
