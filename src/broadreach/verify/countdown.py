"""Countdown: an expression over given numbers, read by a whitelist of syntax and exact rationals.

The rule (verifiers.md, 3c): at most 200 characters, integers, + - * / with brackets and signs, every given number
exactly once, the value equal to the target. Nothing is ever evaluated by Python.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH = 200
ALPHABET = re.compile(r"[0-9+\-*/() \t\r\n]+")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What an expression is worth, and which integers it wrote."""

    value: Fraction
    numbers: tuple[int, ...]


def read_arithmetic(expression: str) -> Arithmetic | None:
    """The expression's exact value, or None for anything outside the grammar (and for a division by zero)."""
    if len(expression) > MAX_LENGTH or not ALPHABET.fullmatch(expression):
        return None
    try:
        tree = ast.parse(" ".join(expression.split()), mode="eval")
        numbers: list[int] = []
        return Arithmetic(_value(tree.body, numbers), tuple(numbers))
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        return None


def _value(node: ast.expr, numbers: list[int]) -> Fraction:
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            numbers.append(number)
            return Fraction(number)
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, numbers)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand, numbers)
        case ast.BinOp():
            left, right = _value(node.left, numbers), _value(node.right, numbers)
            match node.op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
                case ast.Div():
                    return left / right
    raise ValueError("outside the grammar of Countdown")


def countdown_equal(payload: str, target: int | str, numbers: Iterable[int]) -> bool:
    """Whether the expression uses every number exactly once and is worth the target."""
    arithmetic = read_arithmetic(payload)
    return (
        arithmetic is not None
        and Counter(arithmetic.numbers) == Counter(numbers)
        and arithmetic.value == Fraction(str(target).strip())
    )


def countdown_key(payload: str, numbers: Iterable[int]) -> str | None:
    """The vote: the value, and whether the numbers were used legally; None for what is no expression."""
    arithmetic = read_arithmetic(payload)
    if arithmetic is None:
        return None
    legal = Counter(arithmetic.numbers) == Counter(numbers)
    return f"{arithmetic.value}{'' if legal else ' (illegal)'}"
