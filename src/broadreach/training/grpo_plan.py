"""How one GRPO update is cut into optimiser steps and micro-batches, and the objective in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from broadreach.config import GRPO_PRESETS, Config, GrpoSettings
from broadreach.training.setup import Prepared
from broadreach.types import UserError

POSITIONS = 4096
"""Most token positions of a forward and backward pass when grpo.micro_batch is not given."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one forward and backward pass."""

    start: int
    stop: int
    weight: float
    """What makes the mean over chunks the mean over responses: 1 unless the chunks differ in size."""


@dataclass(frozen=True, slots=True)
class GrpoPlan:
    """The shape of an update; one update is one generation of batch x group responses."""

    batch: int
    group: int
    mini_batches: int
    """Optimiser steps of one pass over the responses."""
    iterations: int
    micro_batch: int
    accumulation: int
    """Micro-batches of one optimiser step."""

    @property
    def steps(self) -> int:
        """Optimiser steps of one update."""
        return self.mini_batches * self.iterations

    @property
    def chunks_per_pass(self) -> int:
        """Micro-batches of one pass over the responses."""
        return self.mini_batches * self.accumulation

    def chunks(self, prompts: int) -> list[Chunk]:
        """The micro-batches of an update with `prompts` prompts (the last batch of an epoch may be short).

        A mini-batch holds whole prompts in batch order; their responses are spread over the micro-batches evenly.
        """
        found = []
        for first, last in _even(0, prompts, self.mini_batches):
            rows = (last - first) * self.group
            parts = _even(first * self.group, last * self.group, self.accumulation)
            found += [Chunk(start, stop, (stop - start) * self.accumulation / max(rows, 1)) for start, stop in parts]
        return found


def make_plan(config: Config, prepared: Prepared) -> GrpoPlan:
    """Cut the updates of a run; UserError says which group size, mini-batch or micro-batch would do."""
    settings, batch = config.grpo, config.train.batch
    if settings.group_size < 2:
        raise UserError(
            "grpo.group_size = 1: a response is compared with the others of its group, so a group needs at least 2 "
            "(the paper uses 8)"
        )
    mini = settings.mini_batch or batch
    _must_divide("grpo.mini_batch", mini, batch, "train.batch")
    rows = mini * settings.group_size
    micro = settings.micro_batch or _default_micro_batch(rows, config, prepared)
    _must_divide("grpo.micro_batch", micro, rows, "grpo.mini_batch x grpo.group_size")
    made = GrpoPlan(batch, settings.group_size, batch // mini, settings.iterations, micro, rows // micro)
    tail = len(prepared.problems) % batch
    if config.train.keep_tail and tail and any(chunk.start == chunk.stop for chunk in made.chunks(tail)):
        raise UserError(
            f"the last batch of an epoch has {tail} problems, too few for {made.mini_batches} mini-batches of "
            f"{made.accumulation} micro-batches: set train.keep_tail = false (for every method that is compared), or "
            "choose a train.batch that divides the problems better"
        )
    return made


def describe(config: Config, plan: GrpoPlan) -> list[str]:
    """The resolved objective in words, one line each."""
    settings = config.grpo
    steps = f"{plan.steps} optimiser step{'s' * (plan.steps > 1)} an update"
    clipping = "" if plan.steps > 1 else "; with one step the ratio is always 1 and clipping never acts"
    return [
        f"GRPO, preset {settings.preset}{_changes(settings)}: {plan.group} responses to each of {plan.batch} prompts "
        f"at temperature {settings.temperature:g}; {_advantage(settings)}",
        f"maximised: {_surrogate(settings)}{_mean(config)}{_penalty(settings)}",
        f"{steps} of {plan.batch // plan.mini_batches} prompts, AdamW, learning rate {settings.learning_rate:g} "
        f"({settings.schedule}), gradient norm at most {settings.max_grad_norm:g}{clipping}",
    ]


def _advantage(settings: GrpoSettings) -> str:
    if settings.scale_rewards == "none":
        return "advantage = reward - mean of the group, not divided by any spread"
    return (
        f"advantage = (reward - mean of the group) / (standard deviation of the {settings.scale_rewards}, "
        "over n - 1, + 1e-4)"
    )


def _surrogate(settings: GrpoSettings) -> str:
    low, high = 1 - settings.epsilon, 1 + (settings.epsilon_high or settings.epsilon)
    truncated = ", responses cut off at the length limit left out" if settings.mask_truncated else ""
    return (
        f"min(ratio x advantage, clipped ratio x advantage), one ratio a {settings.ratio}, clipped to "
        f"[{low:g}, {high:g}]{truncated}; "
    )


def _mean(config: Config) -> str:
    limit = config.sampling.max_new_tokens
    means = {
        "grpo": "mean over the tokens of a response, then over responses (equation 4)",
        "dapo": "mean over all tokens of the batch together (DAPO's token-level loss; without its dynamic sampling "
        "and without its length penalty)",
        "dr_grpo": f"sum over tokens divided by responses x {limit}, the length limit (Dr. GRPO)",
    }
    return means[config.grpo.loss]


def _penalty(settings: GrpoSettings) -> str:
    if settings.beta == 0:
        return "; no KL term"
    return (
        f"; minus {settings.beta:g} x KL to the model this run starts from, per token: "
        "exp(d) - d - 1 with d = log reference - log policy, not corrected for importance"
    )


def _changes(settings: GrpoSettings) -> str:
    named = GrpoSettings(**{"preset": settings.preset, **GRPO_PRESETS[settings.preset]})
    changed = [
        f"{key} {getattr(named, key)} -> {value}"
        for key, value in settings.model_dump().items()
        if key not in ("micro_batch", "generation", "keep_middle") and getattr(named, key) != value
    ]
    return f" with {', '.join(changed)}" if changed else ""


def _default_micro_batch(rows: int, config: Config, prepared: Prepared) -> int:
    longest = max(len(request.prompt) for request in prepared.requests) + config.sampling.max_new_tokens
    return max(d for d in _divisors(rows) if d * longest <= POSITIONS or d == 1)


def _must_divide(key: str, value: int, whole: int, of: str) -> None:
    if whole % value:
        near = sorted(_divisors(whole), key=lambda d: (abs(d - value), d))[:4]
        choices = ", ".join(str(d) for d in sorted(near))
        raise UserError(f"{key} = {value} does not divide {of} = {whole}; {choices} would")


def _divisors(whole: int) -> list[int]:
    return [d for d in range(1, whole + 1) if whole % d == 0]


def _even(start: int, stop: int, parts: int) -> Sequence[tuple[int, int]]:
    edges = [start + (stop - start) * i // parts for i in range(parts + 1)]
    return list(pairwise(edges))
