"""From a response to its score: extract, compare, and ask a pool where comparison cannot be exact.

Pure and total: whatever the text, `grade` gives a Score. The reward follows the paper (method.md, section 1):
1 for a right answer, 0.1 for the right format with a wrong answer, 0 for a format failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broadreach.types import FinishReason, Score
from broadreach.verify.families import FAMILIES, Family, family_named
from broadreach.verify.verdict import Verdict

if TYPE_CHECKING:
    from broadreach.verify.pool import GradingPool

REWARD_CORRECT, REWARD_FORMAT, REWARD_FAILURE = 1.0, 0.1, 0.0


@dataclass(frozen=True, slots=True)
class Item:
    """One response to grade."""

    family: str
    response: str
    gold: str
    data: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: FinishReason | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """What this process could tell about a response on its own."""

    family: Family
    gold: str
    data: Mapping[str, Any]
    payload: str | None
    """The strict payload; None is a format failure."""
    lenient_payload: str | None
    """The forgiving payload, tried only after a format failure."""
    verdict: Verdict | None
    """On the payload, or on the lenient one after a format failure; None: a worker has to settle it."""
    key: str | None
    error: str | None = None

    @property
    def undecided(self) -> str | None:
        """The payload a worker has to look at."""
        if self.verdict is not None:
            return None
        return self.payload if self.payload is not None else self.lenient_payload


def prepare(item: Item) -> Prepared:
    """Everything exact comparison can do, in this process; never raises on text."""
    family = family_named(item.family)
    gold, data = str(item.gold), item.data
    payload = lenient_payload = key = None
    try:
        payload = family.extract(item.response).payload
        if payload is None:
            lenient_payload = family.lenient(item.response)
        candidate = payload if payload is not None else lenient_payload
        if payload is not None:
            key = family.key(payload, data)
        correct = False if candidate is None else family.decide(candidate, gold, data)
        verdict = None if correct is None and family.settle is not None else Verdict(bool(correct))
        return Prepared(family, gold, data, payload, lenient_payload, verdict, key)
    except Exception as error:
        reason = one_line(error)
        return Prepared(family, gold, data, payload, lenient_payload, Verdict(False, error=reason), key, reason)


def one_line(error: BaseException) -> str:
    """An exception as the one line a Score keeps."""
    return f"{type(error).__name__}: {error}"[:300].replace("\n", " ")


def finish(prepared: Prepared, verdict: Verdict) -> Score:
    """The score, once a verdict is there."""
    format_ok = prepared.payload is not None
    correct = format_ok and verdict.correct and verdict.error is None
    return Score(
        reward=REWARD_CORRECT if correct else REWARD_FORMAT if format_ok else REWARD_FAILURE,
        correct=correct,
        format_ok=format_ok,
        answer_key=prepared.key,
        extracted=prepared.payload,
        lenient_correct=verdict.correct,
        error=verdict.error if format_ok else prepared.error,
        timed_out=verdict.timed_out and format_ok,
        f1=_f1(prepared),
    )


def _f1(prepared: Prepared) -> float | None:
    """The token F1 where the family has one; a format failure has none of the words."""
    if prepared.family.f1 is None:
        return None
    return 0.0 if prepared.payload is None else prepared.family.f1(prepared.payload, prepared.gold)


def grade(
    family: str,
    response: str,
    gold: str,
    data: Mapping[str, Any] | None = None,
    *,
    finish_reason: FinishReason | None = None,
    pool: GradingPool | None = None,
) -> Score:
    """Score one response; raises UserError for an unknown family only.

    A symbolic comparison or a program goes to `pool`, or to a pool of one worker that this process shares.
    """
    item = Item(family, response, gold, data or {}, finish_reason)
    prepared = prepare(item)
    if prepared.verdict is not None:
        return finish(prepared, prepared.verdict)
    from broadreach.verify.pool import shared_pool

    chosen = pool or shared_pool()
    return chosen.results([chosen.submit_prepared(prepared)])[0]


__all__ = ["FAMILIES", "Item", "Prepared", "finish", "grade", "prepare"]
