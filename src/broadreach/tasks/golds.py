"""What a gold answer says about itself: whether it is usable, a response made from it, and responses close to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from broadreach.types import Problem

_OPERATORS = re.compile(r"\\(?:div|times|cdot|pm|mp|frac|sqrt|left|right)|[+\-*/=^_\\,;:(\[{]")


def unusable(gold: str) -> str | None:
    """Why this gold cannot be graded against ("empty", "cut off"), or None when it can."""
    text = gold.strip()
    if not text or text.strip("$").strip() == "" or text.lower() in ("none", "null", "nan"):
        return "empty"
    bare = re.sub(r"\\[{}]", "", text)
    if bare.count("{") != bare.count("}"):
        return "cut off (unbalanced braces)"
    if _OPERATORS.sub("", text).strip() == "" and not text.isalnum():
        return "cut off (an operator alone)"
    if re.search(r"(?:\\(?:div|times|cdot|frac|left)|[+*/=^_\\])$", text):
        return "cut off (ends in an operator)"
    return None


def gold_response(problem: Problem) -> str | None:
    """The gold in a box: what a right response to a mathematics or multiple-choice problem looks like."""
    return f"So the answer is \\boxed{{{problem.gold}}}."


def tagged_response(problem: Problem) -> str | None:
    """The gold between answer tags."""
    return f"The passages say so. <answer>{problem.gold}</answer>"


def near_misses(problem: Problem) -> Sequence[str]:
    """Responses with the gold in the wrong form, or (numbers only) a neighbouring value in the right one."""
    gold = problem.gold
    misses = [f"The answer is {gold}.", "\\boxed{}", f"\\boxed{{{gold}", f"<think>\\boxed{{{gold}}}", ""]
    return misses + [f"\\boxed{{{other}}}" for other in _neighbours(gold)]


def tagged_misses(problem: Problem) -> Sequence[str]:
    """The gold without its tags, in two pairs, with a doubled tag, unclosed, or as part of a longer answer."""
    gold = problem.gold
    return [
        f"The answer is {gold}.",
        f"<answer>{gold}</answer> <answer>{gold}</answer>",
        f"<answer>{gold}</answer></answer>",
        f"<answer>{gold}",
        "<answer></answer>",
        f"<answer>{gold} or something else</answer>",
        f"<answer>not {gold}</answer>",
    ]


def choice_misses(problem: Problem) -> Sequence[str]:
    """Every other letter, all letters at once, and the right letter outside its box."""
    letters = list(problem.data["options"])
    others = [letter for letter in letters if letter != problem.gold]
    misses = [f"\\boxed{{{letter}}}" for letter in others]
    joined = ", ".join(letters)
    return [*misses, f"\\boxed{{{joined}}}", f"The answer is {problem.gold}.", f"\\boxed{{{problem.gold}", ""]


def _neighbours(gold: str) -> list[str]:
    plain = gold.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", gold) else gold
    if not re.fullmatch(r"-?\d+(\.\d+)?", plain):
        return []
    value = Fraction(plain)
    whole = value.denominator == 1
    others = [value + 1, value * 100 if value else Fraction(100), -value if value else Fraction(-1)]
    return [str(int(other)) if whole else str(float(other)) for other in others] + [f"{plain}, {plain}7"]
