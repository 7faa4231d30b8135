"""Intervals of means over few training seeds: Student's t, since resampling two or three values only finds them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from broadreach.evaluation.statistics import LEVEL, Interval


def student_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Mean of one value a seed with its t interval; ValueError for fewer than two values, or a level outside 0 to 1.

    Right for values that scatter normally over seeds. A bootstrap of n values reaches at most from the smallest to the
    largest, which for 2 and 3 seeds misses the mean in 50 % and 25 % of cases.
    """
    n = len(values)
    if n < 2 or not 0 < level < 1:
        raise ValueError(
            f"student_interval: {n} values at level {level}: give two or more, and a level between 0 and 1"
        )
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = student_quantile(level, n - 1) * spread / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, level, n)


def student_quantile(level: float, degrees: int) -> float:
    """t with P(|T| < t) = level for whole degrees of freedom, by bisection."""
    low, high = 0.0, 1.0
    while _central(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _central(middle, degrees) < level else (low, middle)
    return (low + high) / 2


def _central(t: float, degrees: int) -> float:
    """P(|T| < t) (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    square = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for power in range(odd, degrees - 1, 2):
        total += term
        term *= square * (power + 1) / (power + 2)
    found = math.sin(angle) * total
    return 2 / math.pi * (angle + found) if odd else found
