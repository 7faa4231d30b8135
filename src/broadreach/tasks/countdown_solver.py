"""Countdown solved by search, to prove that a problem's gold exists."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

Term: TypeAlias = tuple[int, int, str]
"""Numerator, denominator, expression."""


def solve(numbers: Sequence[int], target: int) -> str | None:
    """An expression that uses every number once and is worth the target, by exact fractions; None if there is none."""
    return _search([(number, 1, str(number)) for number in numbers], target)


def _search(terms: list[Term], target: int) -> str | None:
    """Combine any two terms in every way until one is left."""
    if len(terms) == 1:
        numerator, denominator, text = terms[0]
        return text if numerator == target * denominator else None
    for i, j in itertools.combinations(range(len(terms)), 2):
        rest = [term for position, term in enumerate(terms) if position not in (i, j)]
        for combined in _combine(terms[i], terms[j]):
            found = _search([*rest, combined], target)
            if found is not None:
                return found
    return None


def _combine(left: Term, right: Term) -> list[Term]:
    (a, b, x), (c, d, y) = left, right
    results = [
        (a * d + c * b, b * d, f"({x} + {y})"),
        (a * d - c * b, b * d, f"({x} - {y})"),
        (c * b - a * d, b * d, f"({y} - {x})"),
        (a * c, b * d, f"({x} * {y})"),
    ]
    if c != 0:
        results.append((a * d, b * c, f"({x} / {y})"))
    if a != 0:
        results.append((c * b, d * a, f"({y} / {x})"))
    return results
