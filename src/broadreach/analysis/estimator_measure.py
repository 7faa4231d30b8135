"""Table 13's observations at theta and theta +- sigma eps: rewards drawn anew, and scores of fixed sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_rollout import Advance, Asked, Rollout, roll
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.estimator_moments import Couplings, couplings
from broadreach.analysis.estimator_objectives import (
    OBJECTIVES,
    clipped_surrogate,
    group_advantages,
    mean_log_probability,
    sequence_loss,
)
from broadreach.engines.base import Engine
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, Sampling

Floats = NDArray[np.float64]
Tokens = Sequence[int]
CENTRE = Perturbation(seed=0, step=0, sigma=0.0)


@dataclass(frozen=True, slots=True)
class Protocol:
    """Sizes of Table 13; the defaults are the paper's."""

    prompts: int = 16
    seeds: int = 16
    """Generations of a prompt for the regenerated reward."""
    rollouts: int = 8
    """Fixed rollouts of a prompt."""
    targets: int = 32
    """Problems of the supervised batch: 32 x 4 directions are 128 observations."""
    directions: int = 4


@dataclass(frozen=True, slots=True)
class FixedSequences:
    """Sequences that are scored, never generated again: [prompt] -> its sequences."""

    prompts: Sequence[Tokens]
    sequences: Sequence[Sequence[Tokens]]

    def pairs(self) -> tuple[list[Tokens], list[Tokens]]:
        """Prompts and sequences side by side, sequence by sequence."""
        asked = [prompt for prompt, row in zip(self.prompts, self.sequences, strict=True) for _ in row]
        return asked, [sequence for row in self.sequences for sequence in row]


def direction_members(directions: int) -> list[tuple[Member, Member, Member]]:
    """(plus, base, minus) of each direction; every base has an index, hence generation seeds, of its own."""
    return [(Member(3 * d, d, 1), Member(3 * d + 1, d, 0), Member(3 * d + 2, d, -1)) for d in range(directions)]


def reward_couplings(
    asked: Asked,
    store: UnitStore,
    protocol: Protocol,
    perturbation: Perturbation,
    sampling: Sampling,
    advance: Advance | None = None,
) -> Couplings:
    """Objective a: the reward of one response, drawn anew at each of the three points.

    `sampling.common`: the three share the sampling noise of a (prompt, seed); else each has its own.
    """
    kind = "common" if sampling.common else "independent"
    grid: dict[str, list[str]] = {"plus": [], "base": [], "minus": []}
    units: dict[str, Member] = {}
    for plus, base, minus in direction_members(protocol.directions):
        three = {
            "plus": f"{kind}/{perturbation.sigma:g}/plus-{plus.direction}",
            # with common noise one base serves every direction: same weights, same noise
            "base": "common/base" if sampling.common else f"independent/base-{base.direction}",
            "minus": f"{kind}/{perturbation.sigma:g}/minus-{minus.direction}",
        }
        for (place, name), member in zip(three.items(), (plus, base, minus), strict=True):
            grid[place].append(name)
            units.setdefault(name, member)
    found = roll(asked, store, units, perturbation, sampling, protocol.seeds, advance)
    points = {place: np.concatenate([found[name].rewards for name in names], axis=1) for place, names in grid.items()}
    return couplings(points["plus"], points["base"], points["minus"])


def fixed_rollouts(
    asked: Asked, store: UnitStore, protocol: Protocol, sampling: Sampling, advance: Advance | None = None
) -> Rollout:
    """The rollouts of objective c, made once at the base."""
    units = {"rollouts": CENTRE_MEMBER}
    return roll(asked, store, units, CENTRE, sampling, protocol.rollouts, advance)["rollouts"]


def score_members(
    engine: Engine,
    store: UnitStore,
    name: str,
    fixed: FixedSequences,
    protocol: Protocol,
    perturbation: Perturbation,
    advance: Advance | None = None,
) -> dict[str, list[Floats]]:
    """Token log-probabilities of the fixed sequences: "base", and "plus-d", "minus-d" of every direction.

    Real scoring by `Engine.score_tokens`; each member is stored when it is done.
    """
    prompts, sequences = fixed.pairs()
    wanted = {f"{name}/base": CENTRE_MEMBER}
    for plus, _, minus in direction_members(protocol.directions):
        wanted[f"{name}/{perturbation.sigma:g}/plus-{plus.direction}"] = plus
        wanted[f"{name}/{perturbation.sigma:g}/minus-{minus.direction}"] = minus
    found = {}
    for unit, member in wanted.items():
        if unit not in store:
            scores = engine.score_tokens(prompts, sequences, member, perturbation)
            store.add(unit, [[float(value) for value in score.log_probabilities] for score in scores])
        found[unit.rpartition("/")[2]] = [np.array(values) for values in store.get(unit)]
        if advance is not None:
            advance(len(sequences))
    return found


def supervised_couplings(logs: dict[str, list[Floats]], directions: int) -> Couplings:
    """Objective b: cross-entropy a token of each target of the fixed batch."""
    return _fixed(lambda values: -mean_log_probability(values), logs, directions, prompts=len(logs["base"]))


def rollout_couplings(logs: dict[str, list[Floats]], rewards: Floats, directions: int) -> dict[str, Couplings]:
    """Objective c: three functions of the same scores, by name; `rewards` [prompts, rollouts] are the base's."""
    advantages = group_advantages(rewards).ravel()
    functions: tuple[Callable[[list[Floats]], Floats], ...] = (
        mean_log_probability,
        lambda values: sequence_loss(values, advantages),
        lambda values: clipped_surrogate(values, logs["base"], advantages),
    )
    return {
        name: _fixed(function, logs, directions, prompts=len(rewards))
        for name, function in zip(OBJECTIVES, functions, strict=True)
    }


def _fixed(
    function: Callable[[list[Floats]], Floats], logs: dict[str, list[Floats]], directions: int, prompts: int
) -> Couplings:
    def points(place: str) -> Floats:
        return np.concatenate([function(logs[f"{place}-{d}"]).reshape(prompts, -1) for d in range(directions)], axis=1)

    base = function(logs["base"]).reshape(prompts, -1)
    return couplings(points("plus"), np.tile(base, directions), points("minus"))
