"""Token entropy of a policy, by teacher forcing on responses that were kept (method.md section 5, Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from broadreach.engines.base import Engine
from broadreach.evaluation.sample import CENTRE
from broadreach.evaluation.statistics import Interval, bootstrap
from broadreach.evaluation.table import whole_problems
from broadreach.types import CENTRE_MEMBER, UserError


@dataclass(frozen=True, slots=True)
class Kept:
    """A response to score again."""

    problem: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EntropyReport:
    """Mean over problems of the mean over their response tokens, in nats per token."""

    entropy: Interval
    surprise: Interval
    """Minus the mean log-probability of the tokens: cross-entropy against whoever wrote the responses."""
    tokens: int
    of_problem: Mapping[str, float]
    """Problem id -> its entropy, for paired comparisons."""


Sums: TypeAlias = dict[str, list[float]]
"""Problem id -> [sum of entropies, minus the sum of log-probabilities, tokens]."""


def retained(
    store: str | Path, prompts: Mapping[str, Sequence[int]], *, per_problem: int = 4, problems: int | None = None
) -> list[Kept]:
    """The first `per_problem` responses of the first `problems` problems of a store, with their prompts.

    UserError when the store is missing, or a problem has no prompt. Empty responses are left out.
    """
    kept: list[Kept] = []
    for count, rows in enumerate(whole_problems(store)):
        if problems is not None and count >= problems:
            break
        name = rows[0].problem
        if name not in prompts:
            raise UserError(f"{store}: problem {name} is not among the rendered prompts; use the task of the store")
        prompt = tuple(prompts[name])
        kept += [Kept(name, prompt, row.tokens) for row in rows[:per_problem] if row.tokens]
    return kept


def add_scores(engine: Engine, part: Sequence[Kept], sums: Sums) -> None:
    """Teacher-force one chunk and add its tokens to the sums of their problems."""
    scores = engine.score_tokens([k.prompt for k in part], [k.tokens for k in part], CENTRE_MEMBER, CENTRE)
    for item, score in zip(part, scores, strict=True):
        total = sums.setdefault(item.problem, [0.0, 0.0, 0.0])
        total[0] += float(score.entropies.sum(dtype=np.float64))
        total[1] -= float(score.log_probabilities.sum(dtype=np.float64))
        total[2] += len(item.tokens)


def report(sums: Sums) -> EntropyReport:
    """From sums to means and intervals; UserError when there is nothing."""
    if not sums:
        raise UserError("no response to measure the entropy on: the store is empty, or every response is")
    table = np.array(list(sums.values()))
    entropies = table[:, 0] / table[:, 2]
    return EntropyReport(
        entropy=bootstrap(entropies),
        surprise=bootstrap(table[:, 1] / table[:, 2]),
        tokens=int(table[:, 2].sum()),
        of_problem=dict(zip(sums, entropies.tolist(), strict=True)),
    )
