"""The thresholds of the update sparsity: the paper's, or the same in units of what noise alone moves a weight by."""

from __future__ import annotations

import math

from broadreach.analysis.null_paper import ALPHA, MEMBERS, PaperRun, paper_run
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study

_RUNS = {"easy": "qwen2.5-1.5b", "hard": "deepseek-r1-distill-qwen-1.5b"}
"""Setting -> the published run whose thresholds and sparsities stand for it."""


def published_run(setting: str) -> PaperRun:
    """Updates, and tau -> share of moved coordinates reset, of a setting."""
    return paper_run(_RUNS[setting])


def published_spread(setting: str) -> float:
    """alpha sqrt(T / N) of the published ES runs: what noise alone moves a coordinate by."""
    return ALPHA * math.sqrt(published_run(setting).updates / MEMBERS)


def is_published(plan: PaperPlan, study: Study) -> bool:
    """Whether a study trains for the published epochs, so that the published thresholds mean the same."""
    return plan.config(study).train.updates is None


def study_taus(plan: PaperPlan, study: Study) -> tuple[float, ...]:
    """Thresholds of a study, in weight units, increasing.

    A run of other alpha, T or N moves the weights by another distance; its thresholds are the published ones times
    the ratio of alpha sqrt(T / N), so that noise alone gives the same sparsities.
    """
    config = plan.config(study)
    taus = tuple(published_run(study.setting).sparsity)
    if config.train.updates is None:
        return taus
    spread = config.es.alpha * math.sqrt(config.train.updates / config.es.population)
    return tuple(tau * spread / published_spread(study.setting) for tau in taus)


def threshold_task(study: Study) -> str | None:
    """The task on which thresholded weights are scored: MATH-500 in the Hard suite (Table 12), else the run's own."""
    return "math500" if study.suite == "hard" else None
