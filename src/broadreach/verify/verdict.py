"""What a worker says about one comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """Right, wrong, or why it could not be told."""

    correct: bool
    error: str | None = None
    """Why the verifier could not decide, in one line; the verdict is then not "equivalent", and counted apart."""
    timed_out: bool = False
    """Whether a limit of time or memory stopped the comparison or the program."""
