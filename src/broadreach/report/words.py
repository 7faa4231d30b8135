"""How numbers and verdicts are worded; a verdict follows from its interval and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from broadreach.evaluation.summary import Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an interval of a difference says."""

    word: str
    css: str
    """Class of the page: up, down or flat."""
    mark: str
    """Shown beside the word, so that colour is never the only sign."""


HIGHER = Verdict("higher", "up", "▲")
LOWER = Verdict("lower", "down", "▼")
UNDECIDED = Verdict("no difference shown", "flat", "■")


def verdict(entry: Json) -> Verdict:
    """Higher, lower, or undecided where the interval holds zero (or touches it)."""
    return HIGHER if entry["low"] > 0 else LOWER if entry["high"] < 0 else UNDECIDED


def claim(entry: Json) -> str:
    """A claim of a rise: confirmed, refuted or undecided by the interval."""
    return {"higher": "confirmed", "lower": "refuted"}.get(verdict(entry).word, "undecided")


def percent(value: float, digits: int = 1) -> str:
    """0.2812 -> 28.1%."""
    return f"{100 * value:.{digits}f}%"


def interval(entry: Json, digits: int = 1) -> str:
    """[24.0%, 32.1%] of an entry with low and high."""
    return f"[{percent(entry['low'], digits)}, {percent(entry['high'], digits)}]"


def points(value: float) -> str:
    """+0.361 -> +36.1, in percentage points, with a true minus sign."""
    return f"{100 * value:+.1f}".replace("-", "−").replace("−0.0", "0.0").replace("+0.0", "0.0")


def points_interval(entry: Json) -> str:
    """[+32.0, +40.1] of a paired difference."""
    return f"[{points(entry['low'])}, {points(entry['high'])}]"


def count(value: float) -> str:
    """1234567 -> 1,234,567."""
    return f"{value:,.0f}"


def counted(value: int, noun: str) -> str:
    """1 update, 2 updates."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def seconds(value: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if value < 60:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{int(value // 60)} min {value % 60:.0f} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"


def number(value: float) -> str:
    """Four significant digits, without a needless exponent."""
    return f"{value:.4g}"
