r"""The symbolic judge: math-verify parses, numbers at many points disprove or confirm, `verify` decides the rest.

Runs only in the killable child (`math_worker`). math-verify alone accepts two tiny numbers for equal, a third for
0.3333333, and more (verifiers.md, amendment 4); so constants are compared to 40 digits and formulas at random points
before it is asked, and what it says of numbers is never taken against them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import sympy
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig
from math_verify import LatexExtractionConfig, parse, verify

from broadreach.verify.math_equal import MathOptions, numbers_equal
from broadreach.verify.math_value import RELATIONS, Value, nesting

MAX_LENGTH = 600
MAX_EXPONENT_DIGITS, MAX_EXPONENT_DEPTH = 4, 2
MAX_DEPTH = 15
DIGITS, CONSTANT_DIGITS = 30, 60
PROOF_DIGITS = 1_000
SAME_AT_POINT, SAME_CONSTANT = sympy.Float("1e-18"), sympy.Float("1e-40")
POINTS, ENOUGH = 9, 4
COUNTS = frozenset("nmkN")
"""Letters taken for positive whole numbers, so that `\\sqrt{1/n}` is `1/\\sqrt{n}` (row 9)."""
UNEVALUATED = re.compile(
    r"\\(?:i*int|oint|sum|prod|lim|limsup|liminf|bigcup|bigcap|ldots|cdots|dots)(?![A-Za-z])|!!|!\)!|\.\.\."
)
LONG_NUMBER = rf"\d{{{MAX_EXPONENT_DIGITS + 1},}}"
TOWER = re.compile(rf"\d\}}*\)*\^\{{[^{{}}]*(?:\d\}}*\)*\^|!)|\^\{{-?{LONG_NUMBER}|{LONG_NUMBER}!")
CONFIG = LatexExtractionConfig(
    boxed_match_priority=0,
    normalization_config=NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="all", equations=False
    ),
)


def judge(gold: Value, answer: Value, options: MathOptions) -> bool:
    """Whether two expressions, equations or relations have the same value; may run long, and is killed if it does."""
    if any(too_hard(value.text) for value in (gold, answer)):
        return False
    if gold.kind in ("equation", "relation"):
        return _same_relation(gold, answer)
    first, second = read(gold.text), read(answer.text)
    if first is None or second is None:
        return False
    if isinstance(first, sympy.Expr) != isinstance(second, sympy.Expr):
        return False
    if isinstance(first, sympy.Expr):
        agreed = _agree(first, second, options)
        if agreed is not None:
            return agreed
    return bool(verify(first, second, timeout_seconds=None))


def too_hard(text: str) -> bool:
    """Whether a text is refused unparsed: too long or deep, a tower of powers, an integral, sum or limit left to do."""
    if len(text) > MAX_LENGTH or UNEVALUATED.search(text) is not None or TOWER.search(text) is not None:
        return True
    return nesting(text) > MAX_DEPTH or exponent_depth(text) > MAX_EXPONENT_DEPTH


def exponent_depth(text: str) -> int:
    """How deep exponents stand in exponents: 2 for `x^{y^{z}}`."""
    powers: list[bool] = []
    deepest = 0
    for before, character in zip(" " + text, text, strict=False):
        if character == "{":
            powers.append(before == "^")
            deepest = max(deepest, sum(powers))
        elif character == "}" and powers:
            powers.pop()
    return deepest


def read(text: str) -> Any:
    """The sympy object math-verify makes of a text, floats made exact and symbols told apart by name only."""
    parsed = parse(rf"\boxed{{{text}}}", [CONFIG], fallback_mode="no_fallback", parsing_timeout=None)
    if not parsed or isinstance(parsed[0], str):
        return None
    result = parsed[0]
    if isinstance(result, sympy.MatrixBase) or not isinstance(result, sympy.Basic):
        return result
    exact = {number: sympy.Rational(str(number)) for number in result.atoms(sympy.Float)}
    symbols = {symbol: _symbol(symbol.name) for symbol in result.free_symbols if isinstance(symbol, sympy.Symbol)}
    return result.xreplace({**exact, **symbols})


def _symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, positive=True, integer=True) if name in COUNTS else sympy.Symbol(name)


def _agree(first: sympy.Expr, second: sympy.Expr, options: MathOptions) -> bool | None:
    """Numerical agreement: at 60 digits for constants, at random points for formulas; None where nothing evaluates."""
    if first == second:
        return True
    if not first.free_symbols and not second.free_symbols:
        return _agree_constants(first, second, options)
    checked = 0
    for point in _points(first, second):
        one, other = _number_at(first, point, DIGITS), _number_at(second, point, DIGITS)
        if one is None or other is None:
            continue
        if not _close(one, other, SAME_AT_POINT):
            return False
        checked += 1
    if checked < ENOUGH:
        return None
    return not _provably_different(first, second)


def _provably_different(first: sympy.Expr, second: sympy.Expr) -> bool:
    """Whether the difference of two close values is certainly not zero: rounding never makes 1 of `1+e^{-1000}`."""
    difference = first - second
    if difference.is_zero is not None or difference.free_symbols:
        return difference.is_zero is False
    value = difference.evalf(5, maxn=PROOF_DIGITS)
    parts = [part for part in value.as_real_imag() if part != 0]
    return any(isinstance(part, sympy.Float) and part._prec > 1 for part in parts)


def _agree_constants(first: sympy.Expr, second: sympy.Expr, options: MathOptions) -> bool | None:
    one, other = _number_at(first, {}, CONSTANT_DIGITS), _number_at(second, {}, CONSTANT_DIGITS)
    if one is None or other is None:
        return None if first.has(sympy.Function) or second.has(sympy.Function) else False
    if _close(one, other, SAME_CONSTANT) and not _provably_different(first, second):
        return True
    if (options.rel_tol is None and options.abs_tol is None) or not (one.is_real and other.is_real):
        return False
    wanted, given = (Fraction(str(sympy.Rational(value))) for value in (one, other))
    return numbers_equal(wanted, given, options)


def _points(*expressions: sympy.Expr) -> Iterator[Mapping[sympy.Symbol, sympy.Rational]]:
    symbols = sorted(set().union(*(expression.free_symbols for expression in expressions)), key=str)
    source = random.Random(20_260_827)
    for index in range(POINTS):
        low = -40 if index % 3 else 1
        yield {
            symbol: sympy.Integer(source.randint(2, 9))
            if symbol.is_integer
            else sympy.Rational(source.randint(low, 90), source.choice((7, 11, 13)))
            for symbol in symbols
        }


def _number_at(expression: sympy.Expr, point: Mapping[sympy.Symbol, sympy.Rational], digits: int) -> Any:
    try:
        value = expression.xreplace(dict(point)).doit().evalf(digits)
    except (ValueError, TypeError, ArithmeticError, AttributeError, NotImplementedError):
        return None
    return value if value.is_number and value.is_finite and not value.free_symbols else None


def _close(first: Any, second: Any, tolerance: sympy.Float) -> bool:
    distance, size = abs(first - second), max(abs(first), abs(second))
    return bool(distance <= tolerance * size)


def _same_relation(gold: Value, answer: Value) -> bool:
    """`a = b` and `c = d` are the same equation if a - b is a fixed multiple of c - d; a positive one for `<`."""
    if len(gold.items) != 2 or len(answer.items) != 2:
        return False
    sides = [read(item.text) for item in (*gold.items, *answer.items)]
    if not all(isinstance(side, sympy.Expr) for side in sides):
        return False
    mirrored = answer.marks != gold.marks
    if mirrored and RELATIONS.get(answer.marks) != gold.marks:
        return False
    first, second = sides[0] - sides[1], (sides[3] - sides[2] if mirrored else sides[2] - sides[3])
    if not first.free_symbols or not second.free_symbols:
        return False
    ratios = []
    for point in _points(first, second):
        one, other = _number_at(first, point, DIGITS), _number_at(second, point, DIGITS)
        if one is None or other is None:
            continue
        if one == 0 or other == 0:
            if one != other:
                return False
            continue
        ratios.append(one / other)
    if len(ratios) < ENOUGH or not all(_close(ratio, ratios[0], SAME_AT_POINT) for ratio in ratios):
        return False
    return gold.marks in ("=", r"\ne") or bool(ratios[0] > 0)
