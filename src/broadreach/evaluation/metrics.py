"""Pass@K and Maj@K, computed from verdicts only (method.md section 5; verifiers.md sections 0 and 3b)."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Vote:
    """The outcome of a plurality vote."""

    winner: Hashable | None
    """The elected key; None when every response abstained."""
    first_index: int | None
    """The first response that holds the winning key: its verdict is the verdict of the vote."""
    votes: int


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that k of n responses, drawn without replacement, hold one of the c correct ones.

    Exact integers, one rounding (equation 52). ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    n, c, k = _whole(n, "n"), _whole(c, "c"), _whole(k, "k")
    if n < 1:
        raise ValueError(f"pass_at_k: n = {n}, but at least one response is needed")
    if not 0 <= c <= n:
        raise ValueError(f"pass_at_k: c = {c} correct responses of n = {n}; give 0 <= c <= n")
    if not 1 <= k <= n:
        raise ValueError(f"pass_at_k: k = {k} with n = {n} responses; give 1 <= k <= n, or draw more responses")
    every = comb(n, k)
    return (every - comb(n - c, k)) / every


def pass_curve(correct: ArrayLike) -> Floats:
    """Pass@K of every problem for every K: verdicts [problems, samples] -> [problems, samples], K = 1 first.

    ValueError when the verdicts are not a matrix of zeros and ones with at least one row and one column.
    """
    verdicts = _verdicts(correct)
    counts = verdicts.sum(axis=1, dtype=np.int64)
    return _pass_table(verdicts.shape[1])[counts]


def pass_at_1(correct: ArrayLike) -> Floats:
    """Share of correct responses of every problem: verdicts [problems, samples] -> [problems]."""
    return _verdicts(correct).mean(axis=1, dtype=np.float64)


def plurality(keys: Sequence[Hashable | None], k: int) -> Vote:
    """Elect the most frequent key among the first k responses; None abstains, a tie goes to the key seen first.

    ValueError unless 1 <= k <= len(keys). An abstention uses up its place.
    """
    k = _whole(k, "k")
    if not 1 <= k <= len(keys):
        raise ValueError(f"maj_at_k: k = {k} with {len(keys)} responses; give 1 <= k <= the number of responses")
    counts: dict[Hashable, int] = {}
    first: dict[Hashable, int] = {}
    for index, key in enumerate(keys[:k]):
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
            first.setdefault(key, index)
    if not counts:
        return Vote(None, None, 0)
    winner = max(counts, key=lambda key: (counts[key], -first[key]))
    return Vote(winner, first[winner], counts[winner])


def maj_at_k(keys: Sequence[Hashable | None], correct: Sequence[bool], k: int) -> float:
    """1.0 when the vote of the first k responses elects a correct answer, else 0.0 (all abstain: 0.0).

    `keys` in response order, None abstains; `correct` holds the verdict of each response; the winning key is
    judged by the first response that holds it. ValueError on lengths that differ or k outside 1..len(keys).
    """
    if len(keys) != len(correct):
        raise ValueError(f"maj_at_k: {len(keys)} keys but {len(correct)} verdicts; give one verdict per response")
    vote = plurality(keys, k)
    return float(vote.first_index is not None and bool(correct[vote.first_index]))


def maj_curve(keys: Sequence[Sequence[Hashable | None]], correct: ArrayLike) -> Floats:
    """Maj@K of every problem for every K: keys and verdicts [problems, samples] -> [problems, samples]."""
    verdicts = _verdicts(correct)
    curve = np.zeros(verdicts.shape, dtype=np.float64)
    if len(keys) != len(verdicts):
        raise ValueError(f"maj_curve: keys of {len(keys)} problems but verdicts of {len(verdicts)}")
    for row, (votes, rights) in enumerate(zip(keys, verdicts, strict=True)):
        if len(votes) != verdicts.shape[1]:
            raise ValueError(f"maj_curve: problem {row} has {len(votes)} keys and {verdicts.shape[1]} verdicts")
        curve[row] = _running_vote(votes, rights)
    return curve


def task_average(per_problem: ArrayLike) -> float:
    """Mean over problems, which weigh equally: [problems] -> number; ValueError when empty."""
    values = np.asarray(per_problem, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"task_average: shape {values.shape}; give one value per problem, and at least one")
    return float(values.mean())


def suite_average(per_task: Mapping[str, float]) -> float:
    """Mean over tasks, which weigh equally whatever their number of problems; ValueError when empty."""
    if not per_task:
        raise ValueError("suite_average: no task; give at least one")
    return float(np.mean(list(per_task.values())))


def _running_vote(keys: Sequence[Hashable | None], correct: NDArray[np.bool_]) -> Floats:
    """Maj@1..Maj@M of one problem in one pass (a later key must have *more* votes, or an earlier first index)."""
    counts: dict[Hashable, int] = {}
    first: dict[Hashable, int] = {}
    leader: Hashable | None = None
    curve = np.zeros(len(keys), dtype=np.float64)
    for index, key in enumerate(keys):
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
            first.setdefault(key, index)
            if leader is None or (counts[key], -first[key]) > (counts[leader], -first[leader]):
                leader = key
        curve[index] = float(leader is not None and bool(correct[first[leader]]))
    return curve


@lru_cache(maxsize=16)
def _pass_table(n: int) -> Floats:
    """Pass@K for every count of correct responses: [n + 1, n], row c, column K - 1."""
    table = np.array([[pass_at_k(n, c, k) for k in range(1, n + 1)] for c in range(n + 1)], dtype=np.float64)
    table.flags.writeable = False
    return table


def _verdicts(correct: ArrayLike) -> NDArray[np.bool_]:
    values = np.asarray(correct)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"verdicts have shape {values.shape}; give [problems, samples] with at least one of each")
    if values.dtype != np.bool_ and not np.isin(values, (0, 1)).all():
        raise ValueError("verdicts hold values other than 0 and 1; give correct or not, never rewards")
    return values.astype(np.bool_)


def _whole(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name} = {value!r} is not a whole number") from None
