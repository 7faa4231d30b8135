"""Problem by problem: counts before and after, and a few responses to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from broadreach.evaluation.store import SampleRow, read_problems
from broadreach.evaluation.table import whole_problems
from broadreach.report.run_data import Pair

SHOWN = 24
"""Problems whose responses can be opened: the largest gains, the largest losses, and the rest by chance of order."""
LONGEST = 1200
"""Characters of a response that are shown."""


@dataclass(frozen=True, slots=True)
class Example:
    """One response to read."""

    who: str
    text: str
    correct: bool
    format_ok: bool
    cut: bool
    """Longer than what is shown."""


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One problem with its counts and examples."""

    id: str
    question: str
    gold: str
    before: int
    after: int
    examples: tuple[Example, ...]


def problem_rows(pair: Pair, shown: int = SHOWN) -> list[ProblemRow]:
    """The most telling problems, largest gain first; without texts where the task is private."""
    before, after = pair.before.correct.sum(axis=1), pair.after.correct.sum(axis=1)
    chosen = _choose(after - before, shown)
    ids = [pair.before.problem_ids[index] for index in chosen]
    private = pair.before.header.private
    asked = {} if private else read_problems(pair.before_store)
    texts: dict[str, list[Example]] = {name: [] for name in ids}
    if not private:
        for who, store in (("base", pair.before_store), ("ES", pair.after_store)):
            for rows in _of(store, set(ids)):
                texts[rows[0].problem] += _examples(who, rows)
    return [
        ProblemRow(
            id=name,
            question=asked.get(name, {}).get("question", ""),
            gold=asked.get(name, {}).get("gold", ""),
            before=int(before[index]),
            after=int(after[index]),
            examples=tuple(texts[name]),
        )
        for index, name in zip(chosen, ids, strict=True)
    ]


def _choose(change: np.ndarray[tuple[int], np.dtype[np.int64]], shown: int) -> list[int]:
    """Indices by falling change: half from the top, a third from the bottom, the rest from the middle."""
    order = np.argsort(-change, kind="stable").tolist()
    if len(order) <= shown:
        return order
    top, bottom = shown // 2, shown // 3
    middle = shown - top - bottom
    start = (len(order) - middle) // 2
    return order[:top] + order[max(top, start) : max(top, start) + middle] + order[len(order) - bottom :]


def _of(store: Path, wanted: set[str]) -> Iterable[list[SampleRow]]:
    return (rows for rows in whole_problems(store) if rows[0].problem in wanted)


def _examples(who: str, rows: list[SampleRow]) -> list[Example]:
    """The first correct response and the first wrong one, in stored order."""
    firsts = [next((row for row in rows if row.correct is right), None) for right in (True, False)]
    found = sorted((row for row in firsts if row is not None), key=lambda row: row.sample)
    return [Example(who, r.text[:LONGEST], r.correct, r.format_ok, len(r.text) > LONGEST) for r in found]
