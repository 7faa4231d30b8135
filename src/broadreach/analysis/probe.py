"""The sigma probe: how much of a population's reward spread is signal that a second batch confirms (issue 5, RQ3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_values import function_interval
from broadreach.evaluation.statistics import LEVEL, Interval, bootstrap
from broadreach.types import UserError

Floats = NDArray[np.float64]

TARGET = 0.5
"""Share of signal that the recommended prompts per member give: as much signal as noise."""
LOST = 0.5
"""A population whose mean reward falls below this share of the base's is too far from it."""
CLOSE = 0.05
"""Shares of signal nearer than this count as equal; then the smaller sigma is taken."""


@dataclass(frozen=True, slots=True)
class SigmaProbe:
    """What one sigma showed; rewards are means over the prompts of one batch."""

    sigma: float
    mean: Interval
    """Population mean reward over both batches; over members."""
    spread: float
    """Standard deviation of a member's mean reward over one batch (ddof 1, mean variance of the two batches)."""
    signal: Interval
    """Covariance over members of their rewards on the two batches: the variance that both batches share."""
    share: Interval
    """Signal over variance; below 0 by chance when there is none, nan when members are equal on a batch."""
    prompts: int
    """Of one batch."""

    @property
    def prompts_wanted(self) -> int | None:
        """Prompts a member at which signal equals noise; None when the interval of the signal reaches zero."""
        if self.signal.low <= 0 or self.spread == 0:
            return None
        noise = max(0.0, self.spread**2 - self.signal.value)
        return max(1, math.ceil(TARGET / (1 - TARGET) * noise * self.prompts / self.signal.value))


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """How much the reward of one member, the centre, moves although its weights do not."""

    reward: Interval
    """Mean reward of the centre; over prompts."""
    repeats: float
    """Standard deviation over evaluations of the same batch with other sampling seeds; 0 when greedy."""
    batches: float
    """Standard deviation over batches of the same size: spread over prompts / sqrt(prompts)."""
    greedy: bool


@dataclass(frozen=True, slots=True)
class Advice:
    """What the probe recommends, and why."""

    sigma: float | None
    prompts: int | None
    reason: str


def probe_sigma(sigma: float, first: Floats, second: Floats) -> SigmaProbe:
    """Rewards of members on two disjoint batches, [members, prompts] each; intervals resample members.

    Noise of a member on one batch is independent of that on the other, so their covariance is signal alone. UserError
    for fewer than 4 members or unequal batches.
    """
    if first.shape != second.shape or len(first) < 4:
        raise UserError(f"probe: rewards of shape {first.shape} and {second.shape}; give 4 members and equal batches")
    a, b = first.mean(axis=1), second.mean(axis=1)
    members = len(a)
    scale = members / (members - 1)
    da, db = a - a.mean(), b - b.mean()
    product, variance = scale * da * db, scale * (da**2 + db**2) / 2
    return SigmaProbe(
        sigma=sigma,
        mean=bootstrap((a + b) / 2),
        spread=float(np.sqrt(variance.mean())),
        signal=bootstrap(product),
        share=_share(product, scale * da**2, scale * db**2),
        prompts=first.shape[1],
    )


def _share(product: Floats, first: Floats, second: Floats) -> Interval:
    """Signal over the mean variance of the two batches; nan where one of them tells no member from another."""
    if not first.any() or not second.any():
        return Interval(math.nan, math.nan, math.nan, LEVEL, len(product))
    return function_interval([product, (first + second) / 2], lambda c: c[:, 0] / c[:, 1])


def noise_floor(rewards: Floats, greedy: bool, batch: int) -> NoiseFloor:
    """From the centre's rewards [repeats, prompts]: `batch` prompts make one batch.

    UserError for a single repeat unless greedy, or fewer than 2 prompts.
    """
    repeats, prompts = rewards.shape
    if prompts < 2 or (repeats < 2 and not greedy):
        raise UserError(f"noise floor: {repeats} repeats of {prompts} prompts; give at least 2 of each")
    within = 0.0 if greedy else float(rewards.var(axis=0, ddof=1).mean())
    between = float(rewards.mean(axis=0).var(ddof=1))
    answer = max(0.0, between - within / repeats)
    return NoiseFloor(
        reward=bootstrap(rewards.mean(axis=0)),
        repeats=math.sqrt(within / batch),
        batches=math.sqrt((answer + within) / batch),
        greedy=greedy,
    )


def advise(probes: Sequence[SigmaProbe], floor: NoiseFloor) -> Advice:
    """The sigma with the largest confirmed share of signal among those that do not destroy the model."""
    base = floor.reward.value
    kept = [probe for probe in probes if probe.mean.value >= LOST * base]
    if not kept:
        return Advice(
            None,
            None,
            f"every sigma brings the population's mean reward below {LOST:.0%} of the base's {base:.3f}: "
            "try smaller ones",
        )
    confirmed = [probe for probe in kept if probe.signal.low > 0]
    if not confirmed:
        best = max(kept, key=lambda probe: -1.0 if math.isnan(probe.share.value) else probe.share.value)
        return Advice(
            None,
            None,
            f"at no sigma does a second batch confirm that members differ (best: sigma {best.sigma:g}, share "
            f"{_words(best.share)}); try more --prompts (now {best.prompts}), more --members, or larger sigmas",
        )
    largest = max(probe.share.value for probe in confirmed)
    chosen = min((p for p in confirmed if p.share.value >= largest - CLOSE), key=lambda probe: probe.sigma)
    wanted = chosen.prompts_wanted
    dropped = [f"{probe.sigma:g}" for probe in probes if probe not in kept]
    cost = f"; sigma {', '.join(dropped)} lose more than half of the base's reward" if dropped else ""
    return Advice(
        chosen.sigma,
        wanted,
        f"sigma {chosen.sigma:g}: {_words(chosen.share)} of the reward variance over {chosen.prompts} prompts is "
        f"signal that a disjoint batch confirms, the most of {len(probes)} sigmas (the smaller one where they tie), "
        f"and the population keeps {chosen.mean.value / base if base else 1:.0%} of the base's reward{cost}; with "
        f"{wanted} prompts a member signal and noise are equal",
    )


def floor_words(floor: NoiseFloor, batch: int) -> str:
    """The noise floor in one line."""
    seeds = (
        "greedy: evaluating the same batch again gives the same reward, so the floor of repeats is 0"
        if floor.greedy
        else f"other sampling seeds on the same batch move the centre's reward by {floor.repeats:.4f}"
    )
    return (
        f"noise floor over {batch} prompts: {seeds}; other batches move it by {floor.batches:.4f}, which members "
        "of one population share and z-scores remove"
    )


def _words(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "unknown, since members were equal on a batch"
    return f"{interval.value:.0%} [{interval.low:.0%}, {interval.high:.0%}]"
