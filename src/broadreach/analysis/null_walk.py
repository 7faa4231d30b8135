"""Noise-only training of sampled coordinates, in the arithmetic of `noise.update` or of `noise.paper_precision`.

The sample is walked as one tensor of its own name. Its directions are therefore not those that the coordinates would
have in a run, but Gaussians of the same table, and as good: under the null only their distribution matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from broadreach.es.coefficients import make_update
from broadreach.es.shaping import z_score
from broadreach.noise.members import population_members
from broadreach.noise.paper_precision import paper_perturb_, paper_restore_, paper_update_
from broadreach.noise.update import apply_update
from broadreach.runs.ledger import LedgerContents
from broadreach.types import Update, UserError

PRECISIONS = ("exact", "saved", "paper")
"""Float32 centre; the same, saved in the model's type; published in-place arithmetic in the model's type."""
NAME = "null-sample"


@dataclass(frozen=True, slots=True)
class NullStep:
    """One update of a run whose rewards know nothing of the members."""

    sigma: float
    alpha: float
    population: int
    """Directions."""
    update: Update | None
    estimator: str = "one_point"


@dataclass(frozen=True, slots=True)
class NullRun:
    """A noise-only run."""

    steps: tuple[NullStep, ...]
    restores: int
    """Perturb-and-subtract cycles that one copy of the weights goes through in an update (members / engines)."""

    @property
    def deviation(self) -> float:
        """Closed form of a coordinate's standard deviation in exact arithmetic, sqrt(sum_t sum_i c_ti^2).

        It is alpha sqrt(T / N) for z-scored rewards. Anchor decay is not in it.
        """
        updates = [step.update for step in self.steps if step.update is not None]
        return math.sqrt(math.fsum(math.ldexp(c, -u.shift) ** 2 for u in updates for c in u.coefficients))

    @property
    def anchored(self) -> bool:
        """Whether a step decays towards the base."""
        return any(step.update is not None and step.update.anchor_decay > 0 for step in self.steps)


def plain_run(steps: int, members: int, restores: int, sigma: float, alpha: float, seed: int) -> NullRun:
    """T updates of N members with z-scored independent normal rewards; UserError for settings that make no sense."""
    if steps < 1 or members < 2:
        raise UserError(f"a null run of {steps} updates and {members} members: give at least 1 update and 2 members")
    if not 0 <= restores <= members:
        raise UserError(f"{restores} restores an update for {members} members; give 0 to {members} (members / engines)")
    if not (0 < sigma < math.inf and 0 < alpha < math.inf):
        raise UserError(f"sigma {sigma} and alpha {alpha} must be positive numbers")
    generator = np.random.default_rng([seed, 0xA1FA])
    rewards = generator.standard_normal((steps, members))
    made = (make_update(z_score(row.tolist()), alpha) for row in rewards)
    return NullRun(tuple(NullStep(sigma, alpha, members, update) for update in made), restores)


def run_of_ledger(contents: LedgerContents, rewards: str, seed: int, steps: int | None = None) -> NullRun:
    """The ledger's run with its coefficients shuffled among the members, or with z-scored `normal` rewards.

    Steps that made no update make none when shuffled. UserError for a ledger without that many updates.
    """
    last = len(contents.entries)
    steps = last if steps is None else steps
    if not 1 <= steps <= last or contents.header is None:
        raise UserError(f"the ledger has updates 1 to {last}: a null of {steps} updates has nothing to stand on")
    estimator = contents.header.estimator
    generator = np.random.default_rng([seed, 0x5AF1])
    found = []
    for entry in contents.entries[:steps]:
        record, update = entry.record, entry.record.update
        population = len(record.rewards) // (2 if estimator == "two_point" else 1)
        if rewards == "normal":
            decay = update.anchor_decay if update is not None else 0.0
            update = make_update(z_score(generator.standard_normal(population).tolist()), record.alpha, decay)
        elif update is not None:
            order = generator.permutation(len(update.coefficients))
            update = replace(update, coefficients=tuple(update.coefficients[i] for i in order))
        found.append(NullStep(record.sigma, record.alpha, population, update, estimator))
    return NullRun(tuple(found), len(contents.entries[0].record.rewards))


def walk(values: NDArray[np.float32], run: NullRun, precision: str, dtype: str, seed: int) -> NDArray[np.float32]:
    """Where the coordinates stand after the run, as float32; `values` [coordinates] are left alone.

    `dtype` is the model's type, in which `values` are exact already. "saved" walks as "exact" does and is rounded by
    `round_to`. UserError for an unknown precision.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision {precision!r} is none of {', '.join(PRECISIONS)}")
    if precision == "paper":
        return _paper(values, run, dtype, seed)
    centre = {NAME: values.copy()}
    for number, step in enumerate(run.steps, start=1):
        if step.update is not None:
            apply_update(centre, step.update, seed, number, {NAME: values} if step.update.anchor_decay else None)
    return centre[NAME]


def round_to(values: NDArray[np.float32], dtype: str) -> NDArray[np.float32]:
    """float32 values rounded to a model's type."""
    import torch

    if dtype == "float32":
        return values
    rounded: NDArray[np.float32] = torch.from_numpy(values).to(getattr(torch, dtype)).float().numpy()
    return rounded


def _paper(values: NDArray[np.float32], run: NullRun, dtype: str, seed: int) -> NDArray[np.float32]:
    import torch

    if run.anchored:
        raise UserError("anchor decay is not part of the published arithmetic: ask for precision exact or saved")
    weights = torch.from_numpy(values).to(getattr(torch, dtype), copy=True)
    for number, step in enumerate(run.steps, start=1):
        for sign, direction in _cycles(step, run.restores):
            place = {"seed": seed, "step": number, "direction": direction, "sign": sign, "name": NAME}
            paper_perturb_(weights, sigma=step.sigma, **place)  # type: ignore[arg-type]
            paper_restore_(weights, sigma=step.sigma, **place)  # type: ignore[arg-type]
        if step.update is not None:
            shares: Sequence[float] = [math.ldexp(c, -step.update.shift) for c in step.update.coefficients]
            which = step.update.directions
            paper_update_(weights, seed=seed, step=number, directions=which, coefficients=shares, name=NAME)
    moved: NDArray[np.float32] = weights.float().numpy()
    return moved


def _cycles(step: NullStep, restores: int) -> Iterator[tuple[int, int]]:
    """(sign, direction) of the members that one copy of the weights evaluates: the first `restores`."""
    for member in population_members(step.population, step.estimator)[:restores]:
        yield member.sign, member.direction
