"""What an extraction returns, and which part of a response is read at all."""

from __future__ import annotations

from dataclasses import dataclass

THINK_OPEN, THINK_CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Extraction:
    """The payload found inside the required wrapper, or the reason why there is none."""

    payload: str | None
    """None: format failure. Otherwise never empty, except for a code block without code."""
    reason: str = ""
    """Why the format failed, in a few words."""

    @property
    def format_ok(self) -> bool:
        return self.payload is not None


def failure(reason: str) -> Extraction:
    """A format failure."""
    return Extraction(None, reason)


def final_text(response: str) -> str | None:
    """The text after the last `</think>`, or None when a reasoning block is left open (verifiers.md, rule 2)."""
    closed = response.rfind(THINK_CLOSE)
    rest = response if closed < 0 else response[closed + len(THINK_CLOSE) :]
    return None if THINK_OPEN in rest else rest
