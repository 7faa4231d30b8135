"""A sample store as arrays: every metric is computed from this table, never from text again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broadreach.evaluation.store import SampleRow, StoreHeader, read_header, read_rows
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class SampleTable:
    """The whole problems of one store; arrays are [problems, samples] in stored order."""

    header: StoreHeader
    problem_ids: tuple[str, ...]
    correct: NDArray[np.bool_]
    format_ok: NDArray[np.bool_]
    lenient: NDArray[np.bool_]
    """The lenient verdict; the strict one where the verifier gives none."""
    keys: tuple[tuple[str | None, ...], ...]
    """Answer keys, the votes of Maj@K; None abstains."""
    error: NDArray[np.bool_]
    """The verifier could not decide (a timeout included)."""
    timed_out: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    """The response met the token limit."""
    tokens: NDArray[np.int64]
    """Generated tokens."""
    prompt_tokens: NDArray[np.int64]
    """Of one prompt: [problems]."""
    reward: NDArray[np.float64]
    f1: NDArray[np.float64] | None = None
    """Token F1, where the family has one."""

    @property
    def complete(self) -> bool:
        """Whether every problem of the task is stored."""
        return len(self.problem_ids) == self.header.problems


def load(path: str | Path) -> SampleTable:
    """Read the whole problems of a store (an unfinished last problem is left out).

    UserError when there is no store, no whole problem in it, or a row is broken or out of place.
    """
    header = read_header(path)
    ids: list[str] = []
    keys: list[tuple[str | None, ...]] = []
    prompt_tokens: list[int] = []
    cells: list[list[tuple[float, ...]]] = []
    for rows in whole_problems(path):
        ids.append(rows[0].problem)
        keys.append(tuple(row.answer_key for row in rows))
        prompt_tokens.append(rows[0].prompt_tokens)
        cells.append([_numbers(row) for row in rows])
    if not ids:
        raise UserError(f"{path}: not one problem is finished; run the evaluation again, it continues")
    columns = np.moveaxis(np.array(cells, dtype=np.float64), -1, 0)
    correct, format_ok, lenient, error, timed_out, truncated = columns[:6].astype(np.bool_)
    return SampleTable(
        header=header,
        problem_ids=tuple(ids),
        correct=correct,
        format_ok=format_ok,
        lenient=lenient,
        keys=tuple(keys),
        error=error,
        timed_out=timed_out,
        truncated=truncated,
        tokens=columns[6].astype(np.int64),
        prompt_tokens=np.array(prompt_tokens, dtype=np.int64),
        reward=columns[7],
        f1=None if np.isnan(columns[8]).any() else columns[8],
    )


def whole_problems(path: str | Path) -> Iterator[list[SampleRow]]:
    """The rows of each finished problem, in sample order; UserError when a problem has other rows than its 0..M-1."""
    samples = read_header(path).samples
    groups = groupby(read_rows(path), key=lambda row: row.problem)
    pending: list[SampleRow] | None = None
    for _, group in groups:
        if pending is not None:
            yield _whole(pending, samples, path)
        pending = list(islice(group, samples + 1))
    if pending is not None and len(pending) >= samples:
        yield _whole(pending, samples, path)


def _whole(rows: list[SampleRow], samples: int, path: str | Path) -> list[SampleRow]:
    if [row.sample for row in rows] != list(range(samples)):
        raise UserError(
            f"{path}: problem {rows[0].problem} does not have responses 0 to {samples - 1}: the store was edited; "
            "delete it and sample again"
        )
    return rows


def _numbers(row: SampleRow) -> tuple[float, ...]:
    lenient = row.correct if row.lenient_correct is None else row.lenient_correct
    truncated = row.finish_reason == "length"
    flags = (row.correct, row.format_ok, lenient, row.error is not None, row.timed_out, truncated)
    return (*map(float, flags), len(row.tokens), row.reward, math.nan if row.f1 is None else row.f1)
