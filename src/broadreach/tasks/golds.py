"""What a gold answer says about itself: whether it is usable, a response made from it, and responses close to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from broadreach.tasks.countdown_solver import solve
from broadreach.types import Problem

_OPERATORS = re.compile(r"\\(?:div|times|cdot|pm|mp|frac|sqrt|left|right)|[+\-*/=^_\\,;:(\[{]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d+")


def unusable(gold: str) -> str | None:
    """Why this gold cannot be graded against ("empty", "cut off"), or None when it can."""
    text = gold.strip()
    if not text.strip("$ ") or text.lower() in ("none", "null", "nan"):
        return "empty"
    bare = re.sub(r"\\[{}]", "", text)
    if bare.count("{") != bare.count("}"):
        return "cut off (unbalanced braces)"
    if not _OPERATORS.sub("", text).strip():
        return "cut off (an operator alone)"
    if re.search(r"(?:\\(?:div|times|cdot|frac|left)|[+*/=^_\\])$", text):
        return "cut off (ends in an operator)"
    return None


def solution(family: str, problem: Problem) -> str | None:
    """A response of `family` that must score 1, made from the gold; None when the data hold no way to make one."""
    match family:
        case "boxed_math" | "choice":
            return f"So the answer is \\boxed{{{problem.gold}}}."
        case "answer_tag":
            return f"That follows. <answer>{problem.gold}</answer>"
        case "countdown":
            expression = _expression(problem)
            return None if expression is None else f"This works: <answer>{expression}</answer>"
        case "code":
            return f"```python\n{problem.gold}\n```" if problem.gold else None
        case "exact":
            return problem.gold
        case _:
            return None


def near_misses(family: str, problem: Problem) -> Sequence[str]:
    """Responses of `family` that must not score 1: right in the wrong form, or close in the right form."""
    match family:
        case "boxed_math":
            return _boxed_misses(problem)
        case "choice":
            return _choice_misses(problem)
        case "answer_tag":
            return _tag_misses(problem.gold)
        case "countdown":
            return _countdown_misses(problem)
        case "code":
            return _code_misses(problem.gold)
        case "exact":
            return ["", f"{problem.gold} or something else"]
        case _:
            return []


def _expression(problem: Problem) -> str | None:
    """An expression the data hold, the gold itself where it is one, or one found by search."""
    held = problem.data.get("expression")
    if held is not None:
        return str(held)
    if not _WHOLE.fullmatch(problem.gold.strip()):
        return problem.gold
    return solve(problem.data["numbers"], int(problem.data.get("target", problem.gold)))


def _boxed_misses(problem: Problem) -> list[str]:
    gold = problem.gold
    misses = [f"The answer is {gold}.", "\\boxed{}", f"\\boxed{{{gold}", f"<think>\\boxed{{{gold}}}", ""]
    plain = gold.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", gold) else gold
    if not _NUMBER.fullmatch(plain):
        return misses
    value = Fraction(plain)
    tolerant = "float_rel_tol" in problem.data or "float_abs_tol" in problem.data
    others = [value * Fraction(11, 10) + 1 if tolerant and abs(value) >= 1 else value + 1, -value, value * 100]
    return misses + [f"\\boxed{{{_written(other)}}}" for other in others if other != value]


def _written(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.12g}"


def _choice_misses(problem: Problem) -> list[str]:
    options = problem.data.get("options") or {}
    letters = list(options) if isinstance(options, dict) else [chr(65 + index) for index in range(len(options))]
    others = [letter for letter in letters if letter != problem.gold]
    together = [f"\\boxed{{{', '.join(letters)}}}"] if len(letters) > 1 else []
    return [
        *(f"\\boxed{{{letter}}}" for letter in others),
        *together,
        f"It is {problem.gold}.",
        f"\\boxed{{{problem.gold}",
    ]


def _tag_misses(gold: str) -> list[str]:
    return [
        f"The answer is {gold}.",
        f"<answer>{gold}</answer> <answer>{gold}</answer>",
        f"<answer>{gold}</answer></answer>",
        f"<answer>{gold}",
        "<answer></answer>",
        f"<answer>{gold} or something else</answer>",
        f"<answer>not {gold}</answer>",
    ]


def _countdown_misses(problem: Problem) -> list[str]:
    numbers = list(problem.data["numbers"])
    target = problem.data.get("target", problem.gold)
    everything = " + ".join(map(str, numbers))
    invented = [numbers[0], numbers[0], int(target)]
    twice = f"<answer>{numbers[0]} - {numbers[0]} + {target}</answer>"
    return [
        *([] if sorted(invented) == sorted(numbers) else [twice]),
        f"<answer>{target}</answer>",
        f"<answer>({everything}) * 0 + {target}</answer>",
        f"<answer>{numbers[0]}**{numbers[-1]}</answer>",
        "<answer>__import__('os').getpid()</answer>",
        f"The expression is {everything}.",
        "<answer></answer>",
    ]


def _code_misses(code: str) -> list[str]:
    return [
        code,
        f"```python\n{code}\n",
        f"```python\n{code}\n```\n```python\n{code}\n```",
        "```python\nimport sys\nsys.exit(0)\n```",
        "```python\npass\n```",
        "",
    ]
