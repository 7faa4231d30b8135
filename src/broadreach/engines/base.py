"""What an engine does: serve members of a population, generate, score tokens, and give the centre back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.types import Centre, Member, Perturbation, Request, Response, Sampling

Progress: TypeAlias = Callable[[int], None]
"""Called with the number of sequences just finished."""

Deliver: TypeAlias = Callable[[int, list[Response]], None]
"""Called once per member, as soon as it is done, with its position in `members` and its responses, so that
grading runs while the other members generate."""


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Teacher-forced facts about one response: one entry per response token, natural logarithms."""

    log_probabilities: NDArray[np.float32]
    entropies: NDArray[np.float32]
    """Entropy of the next-token distribution, exact over the full vocabulary, in nats."""


class Engine(Protocol):
    """One model served under many perturbations; after every call the centre is served again, bit for bit."""

    parameter_names: tuple[str, ...]

    @property
    def noise_seconds(self) -> float:
        """Wall seconds spent so far on perturbing and restoring weights."""

    def load(self, centre: Centre) -> None:
        """Serve cast(centre, model dtype); UserError when names or shapes are not the model's."""

    def generate(
        self,
        requests: Sequence[Request],
        members: Sequence[Member],
        perturbation: Perturbation,
        sampling: Sampling,
        progress: Progress | None = None,
        deliver: Deliver | None = None,
    ) -> list[list[Response]]:
        """Answer every request under every member: result[member][request], members and requests in order."""

    def score_tokens(
        self,
        prompts: Sequence[Sequence[int]],
        responses: Sequence[Sequence[int]],
        member: Member,
        perturbation: Perturbation,
    ) -> list[TokenScores]:
        """Teacher-force each response after its prompt under one member, at temperature 1."""

    def digest(self) -> str:
        """xxh3-128 over the served weights in canonical order, to prove that the centre is back."""
