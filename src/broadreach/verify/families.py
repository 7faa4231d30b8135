"""The answer families: how each one extracts, compares and votes.

A family is three pure functions and, where comparison cannot be exact, a way to settle the rest in a killable worker.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from broadreach.verify import lenient
from broadreach.verify.answer_tag import answer_key, exact_match, extract_answer_tag, f1
from broadreach.verify.boxed import extract_boxed
from broadreach.verify.choice import choice_equal, chosen_letter
from broadreach.verify.code_block import extract_python_block
from broadreach.verify.code_tests import code_key, run_tests
from broadreach.verify.countdown import countdown_equal, countdown_key
from broadreach.verify.exact import exact_equal, exact_key, extract_exact
from broadreach.verify.extraction import Extraction
from broadreach.verify.math_equal import MathOptions, equivalent, math_key
from broadreach.verify.sandbox import Sandbox
from broadreach.verify.verdict import Verdict

Data = Mapping[str, Any]


class Bench(Protocol):
    """What a pool lends to a family that has to settle a comparison."""

    def symbolic(self, gold: str, payload: str, options: MathOptions) -> Verdict:
        """Compare in a killable child process."""

    def sandbox(self) -> Sandbox:
        """Where model-written programs run."""

    @property
    def deadline(self) -> float | None:
        """Seconds a program may take at most; None: its own limits."""


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of answer; every function is pure and total on text."""

    name: str
    extract: Callable[[str], Extraction]
    """Strict extraction from a response; it decides the format."""
    lenient: Callable[[str], str | None]
    """Forgiving extraction, tried where the strict one fails; logged, never rewarded."""
    decide: Callable[[str, str, Data], bool | None]
    """(payload, gold, data) -> verdict in this process; None: a worker has to settle it."""
    key: Callable[[str, Data], str | None]
    """The vote of a payload in Maj@K; None abstains."""
    settle: Callable[[Bench, str, str, Data], Verdict] | None = None
    """(bench, payload, gold, data) -> verdict by a worker, where `decide` says None."""
    f1: Callable[[str, str], float] | None = None
    """(payload, gold) -> token F1, logged beside the verdict."""
    fingerprint: Callable[[Data], Hashable] | None = None
    """What of `data` a settled verdict depends on: with family, gold and payload, the key of the cache."""


def _options(data: Data) -> Mapping[str, str]:
    options = data.get("options") or {}
    if isinstance(options, Mapping):
        return {str(label): str(text) for label, text in options.items()}
    return {chr(ord("A") + index): str(text) for index, text in enumerate(options)}


def _numbers(data: Data) -> Sequence[int]:
    numbers = data["numbers"] if "numbers" in data else data["nums"]
    return [int(number) for number in numbers]


def _settle_math(bench: Bench, payload: str, gold: str, data: Data) -> Verdict:
    return bench.symbolic(gold, payload, MathOptions.from_data(data))


def _settle_code(bench: Bench, payload: str, gold: str, data: Data) -> Verdict:
    return run_tests(bench.sandbox(), payload, data, bench.deadline)


def _code_fingerprint(data: Data) -> Hashable:
    names = ("prompt_tests", "tests", "setup", "imports", "cpu_seconds", "wall_seconds")
    return tuple(repr(data.get(name)) for name in names)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="boxed_math",
            extract=extract_boxed,
            lenient=lenient.lenient_math,
            decide=lambda payload, gold, data: equivalent(gold, payload, MathOptions.from_data(data)),
            key=lambda payload, data: math_key(payload, MathOptions.from_data(data)),
            settle=_settle_math,
            fingerprint=MathOptions.from_data,
        ),
        Family(
            name="choice",
            extract=extract_boxed,
            lenient=lenient.lenient_choice,
            decide=lambda payload, gold, data: choice_equal(payload, gold, _options(data)),
            key=lambda payload, data: chosen_letter(payload, _options(data)),
        ),
        Family(
            name="answer_tag",
            extract=extract_answer_tag,
            lenient=lenient.lenient_answer_tag,
            decide=lambda payload, gold, data: exact_match(payload, gold),
            key=lambda payload, data: answer_key(payload),
            f1=f1,
        ),
        Family(
            name="countdown",
            extract=extract_answer_tag,
            lenient=lenient.lenient_countdown,
            decide=lambda payload, gold, data: countdown_equal(payload, data.get("target", gold), _numbers(data)),
            key=lambda payload, data: countdown_key(payload, _numbers(data)),
        ),
        Family(
            name="code",
            extract=extract_python_block,
            lenient=lenient.lenient_code,
            decide=lambda payload, gold, data: None if payload.strip() else False,
            key=lambda payload, data: code_key(payload),
            settle=_settle_code,
            fingerprint=_code_fingerprint,
        ),
        Family(
            name="exact",
            extract=extract_exact,
            lenient=lenient.lenient_exact,
            decide=lambda payload, gold, data: exact_equal(payload, gold),
            key=lambda payload, data: exact_key(payload),
        ),
    )
}


def family_named(name: str) -> Family:
    """The family of that name; raises UserError with the names there are."""
    if name not in FAMILIES:
        from broadreach.types import UserError

        raise UserError(f"unknown answer family {name!r}; choose one of {', '.join(sorted(FAMILIES))}")
    return FAMILIES[name]
