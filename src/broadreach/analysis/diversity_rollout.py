"""Responses of perturbed members to fixed problems, graded: rewards and verdicts [problems, samples] a member."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_store import UnitStore
from broadreach.engines.base import Engine
from broadreach.tasks.grading import Grader
from broadreach.types import Member, Perturbation, Problem, Request, Response, Sampling, Score, UserError

Advance: TypeAlias = Callable[[int], None]
"""Called with the number of responses just finished."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One member's graded responses."""

    rewards: NDArray[np.float64]
    """[problems, samples]."""
    correct: NDArray[np.bool_]
    tokens: tuple[tuple[tuple[int, ...], ...], ...]
    """[problem][sample] -> generated token ids."""

    @property
    def mean(self) -> float:
        """Mean reward over problems and samples."""
        return float(self.rewards.mean())


@dataclass(frozen=True, slots=True)
class Asked:
    """Fixed problems with their rendered prompts, and what answers and grades them."""

    engine: Engine
    grader: Grader
    problems: Sequence[Problem]
    prompts: Mapping[str, Sequence[int]]

    def requests(self, samples: int) -> list[Request]:
        """Every problem `samples` times, problem by problem."""
        return [Request(p.id, tuple(self.prompts[p.id]), sample=j) for p in self.problems for j in range(samples)]


def roll(
    asked: Asked,
    store: UnitStore,
    units: Mapping[str, Member],
    perturbation: Perturbation,
    sampling: Sampling,
    samples: int,
    advance: Advance | None = None,
) -> dict[str, Rollout]:
    """Answer every problem `samples` times under each member; units that the store has are read from it.

    Each unit is stored as soon as its member is graded. UserError when a reward is not a finite number.
    """
    missing = [name for name in units if name not in store]
    requests = asked.requests(samples)
    owners = [problem for problem in asked.problems for _ in range(samples)]
    if advance is not None and len(missing) < len(units):
        advance((len(units) - len(missing)) * len(requests))

    def deliver(position: int, responses: list[Response]) -> None:
        scores = asked.grader.grade(owners, responses)
        store.add(missing[position], _packed(responses, scores, owners, samples))

    if missing:
        members = [units[name] for name in missing]
        asked.engine.generate(requests, members, perturbation, sampling, progress=advance, deliver=deliver)
    return {name: _unpacked(store.get(name)) for name in units}


def _packed(
    responses: Sequence[Response], scores: Sequence[Score], owners: Sequence[Problem], samples: int
) -> dict[str, Any]:
    for problem, score in zip(owners, scores, strict=True):
        if not np.isfinite(score.reward):
            raise UserError(f"problem {problem.id}: the reward is {score.reward}; rewards must be finite numbers")

    def grid(values: list[Any]) -> list[list[Any]]:
        return [values[at : at + samples] for at in range(0, len(values), samples)]

    return {
        "rewards": grid([score.reward for score in scores]),
        "correct": grid([int(score.correct) for score in scores]),
        "tokens": grid([list(response.tokens) for response in responses]),
    }


def _unpacked(value: Mapping[str, Any]) -> Rollout:
    return Rollout(
        rewards=np.array(value["rewards"], dtype=np.float64),
        correct=np.array(value["correct"], dtype=np.bool_),
        tokens=tuple(tuple(tuple(tokens) for tokens in row) for row in value["tokens"]),
    )
