"""The wording that asks for each answer form: one constant a form, in our own words except the mathematics line."""

from __future__ import annotations

import hashlib

MATH = r"Please reason step by step, and put your final answer within \boxed{}."
"""Mathematics, as system message (method.md, section 3; the usual Qwen wording)."""

CHOICE = (
    "Think about the question step by step, then choose the best option. "
    r"End with the letter of that option alone, inside \boxed{}."
)
"""Multiple choice, as system message."""

QA = (
    "Answer the question from the passages. Think step by step, then give the shortest answer that is complete "
    "between <answer> and </answer>. For a yes-or-no question write only yes or no there."
)
"""Open question answering over a context, as system message."""

COUNTDOWN = (
    "Combine the given numbers with +, -, * and / (and parentheses) so that the result is the target. "
    "Every number must be used exactly once. Think step by step, then write only the expression between "
    "<answer> and </answer>."
)
"""Countdown, as system message; the checker wants every number, exactly once, and the wording says so."""

MBPP = (
    "Write the Python code that solves the task. "
    "Give exactly one code block, opened with ```python, that holds the complete solution."
)
"""MBPP, as system message (without the tests; the task can show some)."""

TAG = "Think step by step, then write only the final answer between <answer> and </answer>."
"""Any short free-form answer, as system message (reasoning-gym, and JSONL or Hub data of family `answer_tag`)."""

BY_FAMILY = {
    "boxed_math": MATH,
    "choice": CHOICE,
    "answer_tag": TAG,
    "countdown": COUNTDOWN,
    "code": MBPP,
    "exact": "",
}
"""Default system message of a data set that is named by configuration alone."""


def instruction_hash(text: str) -> str:
    """The first 16 hexadecimal digits of the text's SHA-256: runs record it, so that a changed prompt shows."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
