"""How the page of the paper words numbers, units, names and scales."""

from __future__ import annotations

import math
from collections.abc import Iterable

from broadreach.report.paper_item import Entry, PaperItem
from broadreach.report.words import count, number, seconds

UNITS = {
    "percent": "%",
    "points": "points",
    "ratio": "",
    "nats": "nats",
    "reward": "reward",
    "count": "",
    "seconds": "",
}
"""Unit -> the word beside a number or a name; seconds are written with their own. An unknown unit is its own word."""

SCALES = {"laptop": "at laptop scale", "workstation": "at workstation scale", "paper": "at the paper's own scale"}
SHARES = ("percent", "points")
"""Units whose columns share their decimals."""
SHARED = (1, 3)
"""How many those are, at least and at most; a number below 1 may have more of its own."""
PLAIN = (1e-4, 1e7)
"""Sizes that are written without an exponent."""


def decimals(entry: Entry) -> int | None:
    """One or two digits of the interval's width; without interval as printed in the paper.

    None where the number decides for itself.
    """
    if entry.value is None:
        return None
    width = (entry.high or 0.0) - (entry.low or 0.0)
    if width > 0:
        found = max(0, math.ceil(-math.log10(2 * width)) + 1)
    elif entry.origin == "published":
        found = _printed(f"{entry.value:.6g}")
    elif entry.unit in SHARES:
        found = _printed(f"{entry.value:.2f}" if abs(entry.value) >= 1 else f"{entry.value:.3g}")
    else:
        return None
    if entry.unit not in SHARES:
        return found
    return max(SHARED[0], found if abs(entry.value) < 1 else min(SHARED[1], found))


def common_decimals(entries: Iterable[Entry]) -> int:
    """What the percentages and points of one column are written with."""
    needed = (decimals(entry) or SHARED[0] for entry in entries if entry.unit in SHARES)
    return max((min(SHARED[1], digits) for digits in needed), default=SHARED[0])


def level(entry: Entry, digits: int = 1) -> str:
    """The value of an entry; `digits` are the decimals of a percentage or of points."""
    return written(entry.value, entry.unit, _places(entry, digits))


def bracket(entry: Entry, digits: int = 1) -> str:
    """The interval of an entry, [68.1, 72.5]; empty where there is none."""
    if entry.low is None or entry.high is None:
        return ""
    places = _places(entry, digits)
    return f"[{written(entry.low, entry.unit, places)}, {written(entry.high, entry.unit, places)}]"


def written(value: float | None, unit: str, digits: int | None = None) -> str:
    """A number without its unit, with a true minus sign; a dash where it is not known."""
    if value is None:
        return "–"
    if unit == "seconds" and value >= 0:
        return seconds(value)
    if unit in SHARES:
        text = f"{value:{'+' if unit == 'points' else ''}.{digits or 1}f}"
        text = text.lstrip("+-") if float(text) == 0 else text
    elif unit == "count" and value == int(value):
        text = count(value)
    elif digits is not None and (value == 0 or PLAIN[0] <= abs(value) < PLAIN[1]):
        text = f"{value:,.{digits}f}"
    else:
        text = number(value)
    return text.replace("-", "−", 1) if text.startswith("-") else text


def unit_word(unit: str) -> str:
    """The word of a unit; empty where numbers speak for themselves."""
    return UNITS.get(unit, unit)


def with_unit(name: str, unit: str) -> str:
    """A name with its unit, unless it says it already: "Pass@32, %"."""
    word = unit_word(unit)
    return name if not word or word in name.lower() else f"{name}, {word}"


def paper_name(item: PaperItem) -> str:
    """Table 4 for table-4; empty for our own items."""
    kind, _, rest = item.id.partition("-")
    return f"{kind.capitalize()} {rest}" if kind in ("table", "figure") and rest.isdigit() else ""


def heading(item: PaperItem) -> str:
    """The title, with the paper's number before it."""
    name = paper_name(item)
    return item.title if not name or item.title.lower().startswith(name.lower()) else f"{name}: {item.title}"


def scale_words(scale: str) -> str:
    """At laptop scale."""
    return SCALES.get(scale, f"at scale {scale}" if scale else "")


def _places(entry: Entry, shared: int) -> int | None:
    own = decimals(entry)
    return max(shared, own or 0) if entry.unit in SHARES else own


def _printed(text: str) -> int:
    """Decimals that a number needs."""
    return len(text.partition(".")[2].rstrip("0")) if "e" not in text else 0
