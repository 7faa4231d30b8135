"""Suites: which tasks are evaluated together, the target first, then what is held out (paper/datasets.csv)."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class SuiteTask:
    """A task and the split that the paper tests on."""

    task: str
    split: str = "test"


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks that are evaluated together."""

    name: str
    target: tuple[SuiteTask, ...]
    """Tests of what was trained on."""
    held_out: tuple[SuiteTask, ...]

    @property
    def tasks(self) -> tuple[SuiteTask, ...]:
        """All of them, the target first."""
        return (*self.target, *self.held_out)


_GPQA, _MBPP = SuiteTask("gpqa"), SuiteTask("mbpp-sanitized")
_COMMONSENSE, _HOTPOT = SuiteTask("commonsense_qa", "validation"), SuiteTask("hotpotqa", "validation")
_COUNTDOWN = SuiteTask("countdown")

SUITES = {
    "easy": Suite("easy", (SuiteTask("gsm8k"),), (_COMMONSENSE, _HOTPOT, _COUNTDOWN, _GPQA, _MBPP)),
    "hard": Suite(
        "hard",
        (SuiteTask("aime24"), SuiteTask("aime25"), SuiteTask("amc23"), SuiteTask("math500")),
        (_GPQA, _MBPP, _COMMONSENSE, _COUNTDOWN),
    ),
    "svamp": Suite(
        "svamp",
        (SuiteTask("svamp"),),
        (SuiteTask("gsm8k"), _COMMONSENSE, _COUNTDOWN, _MBPP),
    ),
    "nano": Suite(
        "nano",
        (SuiteTask("nano-chain"),),
        (SuiteTask("nano-choice"), SuiteTask("nano-context"), SuiteTask("nano-countdown")),
    ),
}


def get_suite(name: str) -> Suite:
    """The suite of that name; UserError with the nearest name when there is none."""
    if name in SUITES:
        return SUITES[name]
    near = difflib.get_close_matches(name, SUITES, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"suites: {', '.join(SUITES)}"
    raise UserError(f"unknown suite {name!r}; {hint}")
