"""Evolution Strategies on one screen: ask for members, evaluate them, tell their rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broadreach.config import EsSettings
from broadreach.es.coefficients import make_update
from broadreach.es.estimators import direction_weights
from broadreach.es.schedules import alpha_at, sigma_at
from broadreach.es.shaping import spread
from broadreach.noise.members import population_members
from broadreach.types import Member, Perturbation, StepRecord, Update

Evaluate = Callable[[Sequence[Member], Perturbation], Sequence[float]]
"""Mean reward of each member, in member order."""
Apply = Callable[[Update | None, Perturbation], None]
"""Move the centre by this update; None when the rewards asked for none."""


def es_step(settings: EsSettings, seed: int, step: int, total: int, evaluate: Evaluate, apply: Apply) -> StepRecord:
    """One update (method.md section 2, equation 7): the centre moves along the reward-weighted directions."""
    perturbation = Perturbation(seed=seed, step=step, sigma=sigma_at(settings, step, total))
    members = population_members(settings.population, settings.estimator)  # ask
    rewards = tuple(evaluate(members, perturbation))  # evaluate
    record = tell(settings, members, rewards, perturbation, alpha_at(settings, step, total))  # tell
    apply(record.update, perturbation)
    return record


def tell(
    settings: EsSettings,
    members: Sequence[Member],
    rewards: tuple[float, ...],
    perturbation: Perturbation,
    alpha: float,
) -> StepRecord:
    """The update that these rewards ask for; none when their spread is not above `reward_std_floor`."""
    update = None
    if spread(rewards) > settings.reward_std_floor:
        weights = direction_weights(settings, members, rewards, perturbation.sigma)
        update = make_update(weights, alpha, settings.anchor_decay)
    return StepRecord(perturbation.step, perturbation.sigma, alpha, rewards, update)
