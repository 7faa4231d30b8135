"""Sigma and alpha over the updates of a run."""

from __future__ import annotations

import math

from broadreach.config import EsSettings, Schedule


def scheduled(value: float, schedule: Schedule, final_fraction: float, step: int, total: int) -> float:
    """The value at update `step` (1-based) of `total`: constant, or from `value` down to `final_fraction * value`."""
    if schedule == "constant" or total <= 1:
        return value
    progress = min(1.0, (step - 1) / (total - 1))
    share = 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
    return value * (final_fraction + (1 - final_fraction) * share)


def sigma_at(settings: EsSettings, step: int, total: int) -> float:
    """Perturbation scale at this update."""
    return scheduled(settings.sigma, settings.sigma_schedule, settings.final_fraction, step, total)


def alpha_at(settings: EsSettings, step: int, total: int) -> float:
    """Step size at this update."""
    return scheduled(settings.alpha, settings.alpha_schedule, settings.final_fraction, step, total)
