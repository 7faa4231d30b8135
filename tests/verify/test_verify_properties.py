"""What holds for every text: no exception, no overrun; rewriting keeps a verdict, one digit turns it."""

from __future__ import annotations

import re
import time
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broadreach.types import Score
from broadreach.verify import FAMILIES, GradingPool, grade
from broadreach.verify.code_block import fenced_blocks
from broadreach.verify.code_tests import code_key
from broadreach.verify.countdown import countdown_equal, read_arithmetic

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(MANY, max_examples=60)
WORDS = r"""
\boxed{ } { \fbox{ \frac \sqrt ^ _ ( ) [ ] \{ \} , ; = < \le \cup \pm \infty \pi x y n 0 1 7 23 4.5 - \text{
\begin{pmatrix} \end{pmatrix} & \\ $ % ^\circ \left \right ! / \cdot e i ½ ² ٣ − \sin \log \int <think> </think>
<answer> </answer> A
"""
PIECES = st.sampled_from([*WORDS.split(), "```python\n", "```\n", "\n", " ", "\x00", "\ud800", " or "])
SOUP = st.lists(PIECES, max_size=25).map("".join)
ANY_TEXT = st.one_of(SOUP, st.text(max_size=200))
DATA = {"options": {"A": "x", "B": "y"}, "numbers": [1, 7, 23], "target": 31, "tests": ["assert f() == 1"]}


def is_sound(score: Score) -> bool:
    return score.reward in (0.0, 0.1, 1.0) and (not score.correct or score.format_ok)


@MANY
@given(text=ANY_TEXT, gold=ANY_TEXT)
def test_no_text_raises_or_overruns_in_any_exact_family(pool: GradingPool, text: str, gold: str) -> None:
    for family in ("choice", "answer_tag", "countdown", "exact"):
        started = time.monotonic()
        assert is_sound(grade(family, text, gold, DATA, pool=pool))
        assert time.monotonic() - started < 2


@MANY
@given(payload=ANY_TEXT, gold=SOUP)
def test_no_boxed_text_raises_or_overruns(pool: GradingPool, payload: str, gold: str) -> None:
    started = time.monotonic()
    score = grade("boxed_math", f"\\boxed{{{payload}}}", gold, pool=pool)
    assert is_sound(score)
    assert time.monotonic() - started < pool.limits.wall_seconds + 6


@MANY
@given(text=ANY_TEXT)
def test_code_is_found_and_keyed_without_running_it(text: str) -> None:
    for block in fenced_blocks(text):
        code_key(block.code)
    assert FAMILIES["code"].extract(text).payload is None or "```" in text or "~~~" in text


@MANY
@given(text=st.text(alphabet="0123456789+-*/() .x_", max_size=230))
def test_countdown_agrees_with_python_on_its_own_grammar(text: str) -> None:
    arithmetic = read_arithmetic(text)
    if arithmetic is not None:
        assert "**" not in text and "//" not in text
        exact = re.sub(r"\d+", lambda digits: f"F({digits.group()})", text)
        assert eval(exact, {"F": Fraction}) == arithmetic.value  # the grammar was checked above


NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.tuples(st.integers(1, 999), st.integers(2, 99)).map(lambda pair: rf"\frac{{{pair[0]}}}{{{pair[1]}}}"),
    st.tuples(st.integers(0, 999), st.integers(1, 999)).map(lambda pair: f"{pair[0]}.{pair[1]}"),
    st.integers(2, 99).map(lambda n: rf"\sqrt{{{n}}}"),
    st.tuples(st.integers(2, 9), st.integers(2, 99)).map(lambda pair: rf"{pair[0]}\sqrt{{{pair[1]}}}"),
    st.integers(2, 99).map(lambda n: rf"\frac{{{n}\pi}}{{7}}"),
)
ANSWERS = st.one_of(
    NUMBERS,
    st.lists(NUMBERS, min_size=2, max_size=3).map(lambda parts: "(" + ", ".join(parts) + ")"),
    st.lists(NUMBERS, min_size=2, max_size=3).map(lambda parts: r"\{" + ", ".join(parts) + r"\}"),
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: rf"\begin{{pmatrix}} {pair[0]} \\ {pair[1]} \end{{pmatrix}}"),
    NUMBERS.map(lambda number: f"x = {number}"),
    NUMBERS.map(lambda number: rf"{number} x^2 + 1"),
)
REWRITINGS = [
    lambda text: text.replace(r"\frac", r"\dfrac"),
    lambda text: text.replace(" ", ""),
    lambda text: f"  {text} ",
    lambda text: text.replace(", ", r",\; "),
    lambda text: f"${text}$",
    lambda text: rf"\displaystyle {text}",
    lambda text: re.sub(r"(?<!\\left)\(", r"\\left(", re.sub(r"(?<!\\right)\)", r"\\right)", text)),
    lambda text: text.replace(r"\{", r"\left\{").replace(r"\}", r"\right\}"),
    lambda text: text.replace("pmatrix", "bmatrix"),
    lambda text: re.sub(r"^(-?\d{1,3})(\d{3})(\d{3})?$", lambda m: ",".join(filter(None, m.groups())), text),
    lambda text: re.sub(r"\\sqrt\{(\d)\}", r"\\sqrt\1", text),
    lambda text: re.sub(r"\^(\d)", r"^{\1}", text),
    lambda text: text.replace("-", "−"),
    lambda text: text + ".",
]


@FEW
@given(answer=ANSWERS, rewrite=st.sampled_from(REWRITINGS))
def test_rewriting_a_right_answer_keeps_it_right(pool: GradingPool, answer: str, rewrite: object) -> None:
    assert callable(rewrite)
    assert grade("boxed_math", f"\\boxed{{{rewrite(answer)}}}", answer, pool=pool).correct


@FEW
@given(answer=ANSWERS, place=st.integers(0, 50), digit=st.sampled_from("123456789"))
def test_changing_one_digit_makes_it_wrong(pool: GradingPool, answer: str, place: int, digit: str) -> None:
    places = [m.start() for m in re.finditer(r"\d", answer) if answer[m.start() - 1] != "^"]
    chosen = places[place % len(places)]
    if answer[chosen] == digit:
        digit = "9" if digit == "1" else str(int(digit) - 1)
    changed = answer[:chosen] + digit + answer[chosen + 1 :]
    assert not grade("boxed_math", f"\\boxed{{{changed}}}", answer, pool=pool).correct


@FEW
@given(
    numbers=st.lists(st.integers(1, 99), min_size=2, max_size=4),
    operators=st.lists(st.sampled_from("+-*"), min_size=3, max_size=3),
)
def test_countdown_accepts_its_own_sums_and_nothing_one_off(numbers: list[int], operators: list[str]) -> None:
    expression = "".join(f"{n} {o} " for n, o in zip(numbers[:-1], operators, strict=False)) + str(numbers[-1])
    arithmetic = read_arithmetic(expression)
    assert arithmetic is not None and arithmetic.value.denominator == 1
    target = arithmetic.value.numerator
    assert countdown_equal(expression, target, numbers)
    assert not countdown_equal(expression, target + 1, numbers)
    assert not countdown_equal(expression, target, [*numbers, 1])
    assert not countdown_equal(expression.replace(str(numbers[0]), str(numbers[0] + 1), 1), target, numbers)
