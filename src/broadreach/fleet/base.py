"""What a fleet does: evaluate a population and move every replica of the centre by the same update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broadreach.types import Member, Perturbation, Problem, Request, Response, Sampling, Score, Update


@dataclass(frozen=True, slots=True)
class MemberResult:
    """One member's verdicts on the mini-batch, in request order."""

    scores: tuple[Score, ...]
    responses: tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A population's verdicts and what they cost."""

    members: tuple[MemberResult, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall seconds by phase: generation, noise, verification."""


class Fleet(Protocol):
    """One machine or many."""

    def evaluate(
        self,
        members: Sequence[Member],
        perturbation: Perturbation,
        problems: Sequence[Problem],
        requests: Sequence[Request],
        sampling: Sampling,
        progress: Callable[[int], None] | None = None,
    ) -> Evaluation:
        """Answer and grade every request under every member."""

    def apply(self, update: Update | None, perturbation: Perturbation) -> None:
        """Move the centre of every replica."""

    def digests(self) -> list[str]:
        """Digest of the float32 centre of each replica."""
