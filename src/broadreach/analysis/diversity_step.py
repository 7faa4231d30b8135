"""One step of a run: its population, its centre and the next centre answer the same fixed prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_measure import StepVerdicts
from broadreach.analysis.diversity_rollout import Advance, Asked, Rollout, roll
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.theory import shifted_weights
from broadreach.types import CENTRE_MEMBER, Centre, Member, Perturbation, Sampling

CENTRE_SEED, UPDATED_SEED = 1, 2
"""Added to the sampling seed, so that the three policies are drawn independently."""
NOTHING = Perturbation(seed=0, step=0, sigma=0.0)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """What is drawn at one step."""

    members: tuple[Member, ...]
    perturbation: Perturbation
    """Of the update that follows the step."""
    samples: int
    """Responses of a member to a prompt."""
    centre_samples: int
    sampling: Sampling

    def responses(self, problems: int, updated: bool) -> int:
        """Responses in all."""
        return problems * (len(self.members) * self.samples + self.centre_samples * (2 if updated else 1))


@dataclass(frozen=True, slots=True)
class StepRollouts:
    """The graded responses of one step."""

    members: tuple[Rollout, ...]
    centre: Rollout
    updated: Rollout | None

    def verdicts(self, weights: NDArray[np.float64], weights_from: str) -> StepVerdicts:
        """The verdicts alone, with the members' weights."""
        return StepVerdicts(
            members=np.stack([rollout.correct for rollout in self.members]),
            centre=self.centre.correct,
            updated=None if self.updated is None else self.updated.correct,
            weights=weights,
            weights_from=weights_from,
        )


def roll_step(
    asked: Asked,
    store: UnitStore,
    plan: StepPlan,
    centre: Centre,
    next_centre: Callable[[], Centre] | None,
    advance: Advance | None = None,
) -> StepRollouts:
    """Draw what the store lacks; the engine is left serving the last centre that was needed.

    `next_centre` makes the centre after the following update; None when no update follows.
    """
    asked.engine.load(centre)
    units = {f"member-{member.index}": member for member in plan.members}
    found = roll(asked, store, units, plan.perturbation, plan.sampling, plan.samples, advance)
    own = _centre(asked, store, "centre", plan, CENTRE_SEED, advance)
    updated = None
    if next_centre is not None:
        if "updated" not in store:
            asked.engine.load(next_centre())
        updated = _centre(asked, store, "updated", plan, UPDATED_SEED, advance)
    return StepRollouts(tuple(found.values()), own, updated)


def _centre(asked: Asked, store: UnitStore, name: str, plan: StepPlan, offset: int, advance: Advance | None) -> Rollout:
    sampling = Sampling(
        plan.sampling.temperature,
        plan.sampling.max_new_tokens,
        seed=plan.sampling.seed + offset,
        step=plan.sampling.step,
    )
    return roll(asked, store, {name: CENTRE_MEMBER}, NOTHING, sampling, plan.centre_samples, advance)[name]


def ledger_weights(members: Sequence[Member], rewards: Sequence[float]) -> NDArray[np.float64]:
    """Normalised weights of these members from the rewards that the ledger has for the whole population.

    A mirrored member counts like any other. ValueError when a member has no reward.
    """
    if members[-1].index >= len(rewards):
        raise ValueError(f"member {members[-1].index} has no reward among {len(rewards)}")
    return shifted_weights([rewards[member.index] for member in members])


def batch_weights(
    asked: Asked,
    store: UnitStore,
    members: Sequence[Member],
    perturbation: Perturbation,
    sampling: Sampling,
    advance: Advance | None = None,
) -> NDArray[np.float64]:
    """Weights as the run would make them: each member answers a training batch once, as in training."""
    units = {f"weigh-{member.index}": member for member in members}
    found = roll(asked, store, units, perturbation, sampling, 1, advance)
    return shifted_weights([rollout.mean for rollout in found.values()])
