"""Which part of a response is the answer."""

from __future__ import annotations

import pytest

from broadreach.verify.answer_tag import exact_match, extract_answer_tag, f1, normalise
from broadreach.verify.boxed import extract_boxed, last_box
from broadreach.verify.code_block import extract_python_block, fenced_blocks
from broadreach.verify.exact import exact_equal, extract_exact
from broadreach.verify.extraction import final_text
from broadreach.verify.lenient import (
    lenient_answer_tag,
    lenient_choice,
    lenient_code,
    lenient_countdown,
    lenient_exact,
    lenient_math,
)


def test_only_the_text_after_the_last_closed_reasoning_is_final() -> None:
    assert final_text("<think>a</think>b<think>c</think>d") == "d"
    assert final_text("a</think>b") == "b"
    assert final_text("plain") == "plain"


def test_reasoning_left_open_is_no_final_text() -> None:
    assert final_text("<think>a") is None
    assert final_text("<think>a</think>b<think>") is None
    assert "never closed" in extract_boxed("<think>\\boxed{3}").reason


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{1} \boxed{2}", "2"),
        (r"\boxed{a\}b}", r"a\}b"),
        (r"\boxed {5}", "5"),
        (r"\boxed 5", "5"),
        (r"\boxed\frac{1}{2}", r"\frac{1}{2}"),
        (r"\fbox{5}", "5"),
        (r"\boxed{\boxed{\fbox{5}}}", "5"),
        (r"use \boxed to mark. \boxed{7} as \boxed asks", "7"),
        (r"\boxed{unclosed \boxed{7}", "7"),
    ],
)
def test_last_box(text: str, payload: str) -> None:
    assert last_box(text).payload == payload


@pytest.mark.parametrize(
    "text", ["", r"\boxed", r"\boxed{}", r"\boxed{ }", r"\boxed{5", r"\boxed{5\}", r"\boxedfoo{5}"]
)
def test_no_box(text: str) -> None:
    assert not last_box(text).format_ok


def test_exactly_one_pair_of_tags() -> None:
    assert extract_answer_tag("<answer>\n9\n</answer>").payload == "9"
    assert extract_answer_tag(r"<answer>\boxed{42}</answer>").payload == "42"
    for text in ("", "<answer>9", "<answer>9</answer></answer>", "<answer></answer>", "</answer>9<answer>"):
        assert extract_answer_tag(text).payload is None


def test_hotpot_normal_form_match_and_f1() -> None:
    assert normalise("The  Cat, a dog!") == "cat dog"
    assert exact_match("The The", "The The")
    assert not exact_match("!!!", "The The")
    assert f1("yes they are", "yes") == 0.0
    assert f1("yes", "yes") == 1.0
    assert f1("the old mill", "old mill street") == pytest.approx(0.8)
    assert f1("moth", "mill") == 0.0


def test_fences_follow_commonmark() -> None:
    blocks = fenced_blocks("~~~~ Python x\nA\n~~~\n~~~~~\n```text\nB\n```\n```py\nC")
    assert [(block.language, block.code, block.closed) for block in blocks] == [
        ("python", "A\n~~~\n", True),
        ("text", "B\n", True),
        ("py", "C\n", False),
    ]


def test_exactly_one_closed_python_block() -> None:
    assert extract_python_block("```python\nx = 1\n```").payload == "x = 1\n"
    assert extract_python_block("```python\n```").payload == ""
    for text in ("x = 1", "```\nx\n```", "```python\nx", "```py\nx\n```\n```py\ny\n```", "<think>```py\nx\n```"):
        assert extract_python_block(text).payload is None


def test_exact_family_reads_the_whole_final_text() -> None:
    assert exact_equal(extract_exact("<think>x</think>  two\n words ").payload or "", "two words")
    assert not exact_equal("two words", "two word")
    assert extract_exact(" \n").payload is None


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ("Final Answer: **73**", "73"),
        ("The answer is (42).", "(42)"),
        ("so it is $29.00.", "$29.00"),
        ("the answer is 7 apples in total", "7"),
        ("#### 1,234", "1,234"),
        ("72, in total, so", "72"),
        (r"<think>the box \boxed{3}", "3"),
        (r"The answer is $\frac{3}{4}$.", r"\frac{3}{4}"),
        ("nothing at all", None),
    ],
)
def test_lenient_math(text: str, payload: str | None) -> None:
    assert lenient_math(text) == payload


def test_other_lenient_extractions() -> None:
    assert lenient_choice("The answer is B because a car moves") == "B"
    assert lenient_choice("I would say (C)") == "C"
    assert lenient_choice("no idea") is None
    assert lenient_answer_tag("<answer>one</answer> no <answer>two") == "two"
    assert lenient_answer_tag("x\nThe answer is Lake Tova.") == "Lake Tova"
    assert lenient_answer_tag("first\nlast line\n") == "last line"
    assert lenient_countdown("I get 3 × 4 + 5 = 17") == "3 * 4 + 5"
    assert lenient_countdown("none") is None
    assert lenient_code("```\nx = 1\n```") == "x = 1\n"
    assert lenient_code("def f():\n    return 1") == "def f():\n    return 1"
    assert lenient_code("no code") is None
    assert lenient_exact("Let me think.\nAnswer: 'two'.") == "two"
    assert lenient_exact("") is None
