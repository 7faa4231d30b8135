"""Where the names of points go, so that they do not lie over each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from broadreach.report.svg import SIZE

Box: TypeAlias = tuple[float, float, float, float]
"""left, bottom, right, top in points of 1/72 inch."""

LETTER, LINE = 6.3, 13.0
"""Width of a letter and height of a line at the size of the names, in points."""
GAP = 9.0
"""From the middle of a mark to its name, in points."""
FAR = 20.0
"""A name farther away than this needs a line to its mark."""
INSIDE = 0.72
"""Share of the figure's width and height that the axes have, about."""


def place_labels(
    named: Sequence[tuple[str, float, float]], across: tuple[float, float], upright: tuple[float, float]
) -> list[tuple[float, float, str]]:
    """(right, up, alignment) of every name (text, x, y), in points from its mark: the freest place around it.

    `across` and `upright` are the limits of the axes.
    """
    width, height = (72 * inches * INSIDE for inches in SIZE)
    xs = [width * (x - across[0]) / (across[1] - across[0]) for _, x, _ in named]
    ys = [height * (y - upright[0]) / (upright[1] - upright[0]) for _, _, y in named]
    marks: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in zip(xs, ys, strict=True)]
    taken: list[Box] = []
    found = []
    for (text, _, _), x, y in zip(named, xs, ys, strict=True):
        lines = text.split("\n")
        wide, high = LETTER * max(map(len, lines)), LINE * len(lines)
        costs = []
        for order, (right, up, align) in enumerate(_places(high)):
            left = x + right - {"left": 0.0, "center": wide / 2, "right": wide}[align]
            box = (left, y + up - high / 2, left + wide, y + up + high / 2)
            outside = max(0.0, -left) + max(0.0, left + wide - width)
            crossed = sum(_overlap(box, other) for other in (*taken, *marks))
            costs.append((outside * high + crossed, order, (right, up, align), box))
        _, _, place, box = min(costs)
        taken.append(box)
        found.append(place)
    return found


def _places(high: float) -> list[tuple[float, float, str]]:
    """Right, left, above, below, the corners, then the same farther away."""
    level = high / 2 + 5
    near = [(GAP, 0.0, "left"), (-GAP, 0.0, "right"), (0.0, level, "center"), (0.0, -level, "center")]
    sides = ((1, "left"), (-1, "right"))
    corners = [(side * GAP / 2, up, align) for up in (level, -level) for side, align in sides]
    far = [(side * 2 * GAP, up, align) for up in (2.2 * level, -2.2 * level) for side, align in sides]
    wide = [(side * 5 * GAP, up, align) for up in (3.4 * level, -3.4 * level) for side, align in sides]
    return near + corners + far + wide


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return wide * high if wide > 0 and high > 0 else 0.0
