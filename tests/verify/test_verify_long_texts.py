"""Long repeated text costs the trainer's own process next to nothing in any family: every scan is linear."""

from __future__ import annotations

import time

import pytest

from broadreach.verify import FAMILIES, Item
from broadreach.verify.grading import prepare
from broadreach.verify.lenient import lenient_code

SECONDS = 1.5
"""Processor time of one response; the quadratic scans of before took 4 to 500 s on these."""
WORDS = r"""
1 1+ ((1 1/2 1, 0,123, 1! - x= x< ^ _ ^{ ^{2} ! / | : % $ * # ( ) (1 [ ] { } {1} {) \ \\ ½ √ ² ₂ × ÷ a ab answer
\boxed \boxed{ \boxed{} \boxed{1} \boxed{\boxed{ \fbox{ \text{ \text{a \text{a} \frac \frac1 \frac{ \frac{) \sqrt
\frac{1}{2} \sqrt[ \sqrt( \binom{9}{4} \{ \} \left( \right) \displaystyle \phantom{ \overline{ \pm \pm1 \cup \in \le
\circ ^\circ cm per km/h final <answer> </answer> <answer>1 <think> </think> `
"""
REPEATED = WORDS.split()
SPACED = ["1 ", "1 2 3 ", "a ", "answer ", "answer is ", "A. ", "OR ", "and ", "\\fbox {", "10 apples ", " ", "\n"]
FENCES = ["```", "```python\n", "~~~\n", "``` x", "def f():\n", '"""\n']
FORMS = {
    "boxed_math": "\\boxed{%s}",
    "choice": "\\boxed{%s}",
    "answer_tag": "<answer>%s</answer>",
    "countdown": "<answer>%s</answer>",
    "code": "```python\n%s\n```",
    "exact": "%s",
}
DATA = {"options": {"A": "x", "B": "y"}, "numbers": [1, 2, 3], "target": 6, "tests": ["assert f() == 1"]}
GOLDS = {"choice": "A", "countdown": "6"}


def cost(family: str, text: str) -> float:
    started = time.process_time()
    prepared = prepare(Item(family, text, GOLDS.get(family, "42"), DATA))
    assert prepared.error is None
    return time.process_time() - started


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_pieces_cost_no_time(family: str) -> None:
    slow = []
    for piece in (*REPEATED, *SPACED, *FENCES):
        for form, length in ((FORMS[family], 16_000), ("%s", 32_000)):
            seconds = cost(family, form % (piece * length)[:length])
            if seconds > SECONDS:
                slow.append((form, piece, round(seconds, 1)))
    assert slow == []


RUNS = {
    "a phrase and spaces": "the answer is" + " " * 30_000,
    "a fence and spaces": "```a" + " " * 30_000 + "b",
    "a text and spaces": "\\boxed{\\text{" + " " * 19_000 + "}}",
    "deep braces": "\\boxed{" + "{" * 9_000 + "}" * 9_000 + "}",
    "open braces after closed ones": "\\boxed{" + "x}" * 3_000 + "{)\\frac{)" * 2_000,
    "a box and digits": "\\boxed " + "1," * 15_000,
    "factorials": "\\boxed{" + "4000!/3999!+" * 150 + "1}",
    "fractions": "\\boxed{" + "+".join(f"1/{n}" for n in range(2, 400)) + "}",
    "digits": "\\boxed{0." + "9" * 19_000 + "}",
    "a long list": "\\boxed{" + "x=1," * 450 + "}",
}


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
def test_one_long_run_costs_no_time(text: str) -> None:
    for family in FAMILIES:
        assert cost(family, text) < SECONDS, family
    started = time.process_time()
    lenient_code(text)
    assert time.process_time() - started < SECONDS


def test_the_reported_responses_that_hung_the_trainer() -> None:
    for family, text in (
        ("countdown", "1" * 1_000),
        ("countdown", "1 2 3 " * 166),
        ("boxed_math", "\\boxed{" * 2_285),
        ("choice", "\\boxed{" * 2_285),
    ):
        assert cost(family, text) < 0.5, family
