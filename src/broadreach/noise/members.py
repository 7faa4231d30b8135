"""The members of one population: which direction each uses, and with which sign."""

from __future__ import annotations

from broadreach.types import Member


def population_members(population: int, estimator: str) -> list[Member]:
    """N members for "one_point"; for "two_point" the 2N members of the pairs (+0, -0, +1, -1, ...)."""
    if estimator == "one_point":
        return [Member(index=i, direction=i, sign=1) for i in range(population)]
    return [
        Member(index=2 * i + half, direction=i, sign=-1 if half else 1) for i in range(population) for half in (0, 1)
    ]
