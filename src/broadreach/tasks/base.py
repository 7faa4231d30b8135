"""The Task protocol: problems, how to ask them, and how to score an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broadreach.types import FinishReason, Message, Problem, Score


class Task(Protocol):
    """One source of problems with a verifier; everything is pure and total."""

    @property
    def name(self) -> str:
        """The name in the configuration."""

    @property
    def family(self) -> str:
        """The verifier family (broadreach.verify.families) that grades it, or "custom" for a verifier of its own."""

    def problems(self, split: str) -> list[Problem]:
        """All problems of `split` in a fixed order; UserError when the data is missing (how to get it)."""

    def messages(self, problem: Problem) -> list[Message]:
        """The chat turns that ask this problem, without worked examples."""

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        """Problems with a model answer, for `shots`; never from the test split."""

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The verdict on one response; never raises, a verifier failure is `Score.error`."""
