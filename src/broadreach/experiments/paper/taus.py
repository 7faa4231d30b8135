"""The thresholds of the update sparsity: the paper's, or the same in units of what noise alone moves a weight by."""

from __future__ import annotations

import math

from broadreach.analysis.null_paper import ALPHA, MEMBERS
from broadreach.evaluation.published import published_rows
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study

PUBLISHED_TAUS = {
    "easy": (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3),
    "hard": (2.5e-4, 5e-4, 1e-3, 1.5e-3, 2e-3, 2.5e-3, 3e-3),
}
PUBLISHED_UPDATES = {"easy": 234, "hard": 630}
"""Two epochs of 7,473 problems and one of 40,315, in batches of 64."""


def published_spread(setting: str) -> float:
    """alpha sqrt(T / N) of the published ES runs: what noise alone moves a coordinate by."""
    return ALPHA * math.sqrt(PUBLISHED_UPDATES[setting] / MEMBERS)


def published_shares(setting: str) -> tuple[float, ...]:
    """The shares of moved coordinates that the thresholds reset: of Qwen2.5-1.5B in Easy, of DeepSeek in Hard."""
    model = {"easy": "Qwen2.5-1.5B-Instruct", "hard": "DeepSeek-R1-Distill-Qwen-1.5B"}[setting]
    rows = [row for row in published_rows("threshold.csv") if row["model"] == model and row["delta_points"]]
    return tuple(float(row["sparsity_percent"]) / 100 for row in rows if row["tau"] != "0")


def is_published(plan: PaperPlan, study: Study) -> bool:
    """Whether a study trains for the published epochs, so that the published thresholds mean the same."""
    return resolve((study.recipe,), (*study.overrides, *plan.overrides)).train.updates is None


def study_taus(plan: PaperPlan, study: Study) -> tuple[float, ...]:
    """Thresholds of a study, in weight units, increasing.

    A run of other alpha, T or N moves the weights by another distance; its thresholds are the published ones times
    the ratio of alpha sqrt(T / N), so that noise alone gives the same sparsities.
    """
    config = resolve((study.recipe,), (*study.overrides, *plan.overrides))
    taus = PUBLISHED_TAUS[study.setting]
    if config.train.updates is None:
        return taus
    spread = config.es.alpha * math.sqrt(config.train.updates / config.es.population)
    return tuple(tau * spread / published_spread(study.setting) for tau in taus)


def threshold_task(study: Study) -> str | None:
    """The task on which thresholded weights are scored: MATH-500 in the Hard suite (Table 12), else the run's own."""
    return "math500" if study.suite == "hard" else None
