"""One step of the centre, in the chosen arithmetic: training, resume and replay all go through here."""

from __future__ import annotations

import math
from typing import TypedDict

from broadreach.noise.members import population_members
from broadreach.noise.paper_precision import paper_perturb_, paper_restore_, paper_update_
from broadreach.noise.update import apply_update
from broadreach.types import Centre, Perturbation, Update


class Place(TypedDict):
    """Which noise goes where."""

    seed: int
    step: int
    direction: int
    name: str


def advance(
    centre: Centre,
    update: Update | None,
    perturbation: Perturbation,
    *,
    base: Centre | None = None,
    precision: str = "exact",
    model_dtype: str = "float32",
    population: int = 0,
    estimator: str = "one_point",
) -> None:
    """Move `centre` in place by one step.

    "exact" is the fused integer update (design.md section 3). "paper" walks every member through the published
    in-place arithmetic (perturb, subtract, then add the update in the model dtype), which moves the weights even when
    there is no update; `base` is needed only for an anchored update.
    """
    if precision == "exact":
        if update is not None:
            apply_update(centre, update, perturbation.seed, perturbation.step, base)
        return
    _paper_step(centre, update, perturbation, model_dtype, population, estimator)


def _paper_step(
    centre: Centre,
    update: Update | None,
    perturbation: Perturbation,
    model_dtype: str,
    population: int,
    estimator: str,
) -> None:
    import torch

    seed, step = perturbation.seed, perturbation.step
    for name, array in centre.items():
        weights = torch.from_numpy(array).to(getattr(torch, model_dtype), copy=True)
        for member in population_members(population, estimator):
            assert member.sign != 0
            place: Place = {"seed": seed, "step": step, "direction": member.direction, "name": name}
            paper_perturb_(weights, sign=member.sign, sigma=perturbation.sigma, **place)
            paper_restore_(weights, sign=member.sign, sigma=perturbation.sigma, **place)
        if update is not None:
            shares = [math.ldexp(c, -update.shift) for c in update.coefficients]
            paper_update_(weights, seed=seed, step=step, directions=update.directions, coefficients=shares, name=name)
        array[...] = weights.float().numpy()
