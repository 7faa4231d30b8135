"""ES with other normalisations and estimators, with steps of equal expected length (claim 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from broadreach.config import Config
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job
from broadreach.experiments.paper.plan import PaperPlan

RAW_FACTORS = (1, 3, 10)
"""Raw rewards get three step sizes, alpha sigma times these, because their scale is the rewards' own."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of turning rewards into an update."""

    name: str
    """Its folder."""
    label: str
    overrides: tuple[str, ...]


def variants(config: Config) -> list[Variant]:
    """Every variant of a z-scored one-point recipe.

    Centred ranks of N members have a standard deviation of sqrt((N + 1) / (12 (N - 1))) instead of 1, and alpha is
    divided by it. Two-point ES has half as many directions, so as many evaluations.
    """
    members, alpha, sigma = config.es.population, config.es.alpha, config.es.sigma
    spread = math.sqrt((members + 1) / (12 * (members - 1)))
    found = [
        Variant("ranks", "centred ranks", ("es.shaping=centred_ranks", f"es.alpha={alpha / spread:.6g}")),
        Variant(
            "two-point", "two-point, equal evaluations", ("es.estimator=two_point", f"es.population={members // 2}")
        ),
    ]
    for factor in RAW_FACTORS:
        step = alpha * sigma * factor
        found.append(
            Variant(f"raw-{factor}", f"raw rewards, alpha {step:.2g}", ("es.shaping=none", f"es.alpha={step:.6g}"))
        )
    return found


def variant_run(plan: PaperPlan, variant: Variant, seed: int) -> Path:
    """The run folder of one variant and seed."""
    return plan.folder / "settings" / f"{variant.name}-seed{seed}"


def plan_variants(plan: PaperPlan) -> list[Variant]:
    """The variants of the first Easy study's recipe."""
    study = plan.scale.easy[0]
    return variants(plan.config(study))


def variant_cells(plan: PaperPlan) -> list[Cell]:
    """One cell a variant and seed: trained and evaluated on the training task."""
    study = plan.scale.easy[0]
    cells = []
    for variant in plan_variants(plan):
        for seed in plan.scale.settings_seeds:
            run = variant_run(plan, variant, seed)
            chosen = (*plan.plain(study), *variant.overrides, f"seed={seed}")
            settings = [part for item in chosen for part in ("--set", item)]
            train = ("train", study.recipe, *settings, "--run", str(run), "--json")
            jobs = (Job("training", train), Job("evaluating", ("eval", str(run), "--json")))
            config = resolve((study.recipe,), chosen)
            cells.append(Cell(f"settings:{run.name}", jobs, config=config))
    return cells
