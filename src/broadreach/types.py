"""Frozen dataclasses that cross rooms (design.md, section 4). This module imports nothing of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Message: TypeAlias = dict[str, str]
"""One chat turn: {"role": "system" | "user" | "assistant", "content": text}."""

Centre: TypeAlias = dict[str, NDArray[np.float32]]
"""The float32 master weights: canonical (checkpoint) name -> array, sorted by name, tied tensors once."""

FinishReason = Literal["stop", "length"]


class UserError(ValueError):
    """A mistake of the user: the command line prints its one line and exits with code 2, without a traceback."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One item of a task."""

    id: str
    """Unique within the task, and the same on every machine (it keys the sampling noise)."""
    question: str
    """The text to ask, before the task's instruction and the model's chat template."""
    gold: str
    """The reference answer as text."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the family needs besides: options, numbers, target, tests, context."""


@dataclass(frozen=True, slots=True)
class Response:
    """One generated text."""

    text: str
    tokens: tuple[int, ...]
    """Generated token ids, the end-of-sequence token included when it was produced."""
    finish_reason: FinishReason
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Score:
    """The verdict on one response; a verifier failure is an `error`, never a plain zero."""

    reward: float
    """1 correct, 0.1 right format but wrong answer, 0 format failure (method.md, section 1)."""
    correct: bool
    format_ok: bool
    answer_key: str | None = None
    """The vote of this response in Maj@K; None abstains."""
    extracted: str | None = None
    """The payload found inside the required wrapper."""
    lenient_correct: bool | None = None
    """Whether a lenient extraction would have been right; logged, never rewarded."""
    error: str | None = None
    """Why the verifier could not decide ("timeout", or the exception in one line)."""
    timed_out: bool = False
    f1: float | None = None
    """Token F1 of an `answer_tag` answer (HotpotQA), 0 for a format failure; logged, never rewarded."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a population: the weights `theta + sign * sigma * direction`."""

    index: int
    """Position in the population, 0 to evaluations - 1."""
    direction: int
    """Which noise direction of this step it uses."""
    sign: Literal[-1, 0, 1]
    """+1 or -1 (the mirrored half of a two-point pair); 0 is the unperturbed centre."""


CENTRE_MEMBER = Member(index=0, direction=0, sign=0)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What, besides the member, fixes a perturbation: theta + sign * sigma * eps(seed, step, direction)."""

    seed: int
    step: int
    sigma: float


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt to answer once."""

    problem_id: str
    prompt: tuple[int, ...]
    """Token ids, rendered by the model's own chat template."""
    sample: int = 0
    """Which of several responses to this prompt (evaluation draws 32); keys the sampling noise."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How responses are drawn; the noise is keyed per (seed, step, member, problem, sample, position)."""

    temperature: float
    """0 is greedy."""
    max_new_tokens: int
    seed: int = 0
    step: int = 0
    common: bool = False
    """True: all members share the sampling noise; False: each member has its own."""


@dataclass(frozen=True, slots=True)
class Update:
    """One ES update in exact integers: theta += 2**-(shift+12) * sum_i coefficients[i] * q_i."""

    directions: tuple[int, ...]
    coefficients: tuple[int, ...]
    shift: int
    """K of design.md section 3: max |c_i| lies in [2**29, 2**30)."""
    anchor_decay: float = 0.0
    """Share of the way back to the base weights, taken in the same rounding."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What one ES step did: the ledger keeps exactly this."""

    step: int
    sigma: float
    alpha: float
    rewards: tuple[float, ...]
    """Mean reward of each member, in member order."""
    update: Update | None
    """None: the rewards were equal (or their spread below the floor), nothing moved."""
    problems: Sequence[str] = ()
    """Ids of the mini-batch."""
