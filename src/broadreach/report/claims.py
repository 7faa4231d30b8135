"""What a claim of the paper (method.md, section 8) is, and how an interval decides it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from broadreach.evaluation.statistics import LEVEL
from broadreach.evaluation.summary import Json

CONFIRMED, REFUTED, UNDECIDED, UNMEASURED = "confirmed", "refuted", "undecided", "not measured here"
BY_SEEDS = ("5a", "5b")
"""Parts without an interval: every seed must agree."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One part of a claim with its verdict."""

    number: str
    statement: str
    verdict: str
    evidence: str


def rises(found: Json) -> str:
    """A rise: confirmed when the whole interval lies above zero, refuted when below."""
    return CONFIRMED if found["low"] > 0 else REFUTED if found["high"] < 0 else UNDECIDED


def falls(found: Json) -> str:
    """A fall: the mirror image of `rises`."""
    return {CONFIRMED: REFUTED, REFUTED: CONFIRMED}.get(rises(found), UNDECIDED)


def stays(found: Json, margin: float) -> str:
    """No change worth the name: the whole interval within the margin; refuted when wholly outside it."""
    if -margin <= found["low"] and found["high"] <= margin:
        return CONFIRMED
    return REFUTED if found["low"] > margin or found["high"] < -margin else UNDECIDED


def multiplicity(claims: Sequence[Claim]) -> str:
    """How many parts an interval decides and what that means, in one sentence."""
    tested = sum(claim.verdict != UNMEASURED and claim.number not in BY_SEEDS for claim in claims)
    expected = tested * (1 - LEVEL)
    return (
        f"{tested} parts are tested by an interval, each at {LEVEL:.0%} by itself and without correction for their "
        f"number: if nothing had changed at all, about {expected:.1f} of them would still look decided."
    )


def absent(number: str, statement: str) -> Claim:
    """A part whose methods are not among the runs."""
    return Claim(number, statement, UNMEASURED, "The runs given hold no such method or too few responses.")
