"""What makes two problems the same: the normalised text, and for Countdown the target with the sorted numbers."""

from __future__ import annotations

import re
import unicodedata
from typing import TypeAlias

from broadreach.types import Problem

Key: TypeAlias = tuple[object, ...]

_TYPESETTING = re.compile(r"\\(?:left|right|displaystyle|dfrac|tfrac|text|mathrm|mbox|[,;!: ()\[\]])")
_APART = re.compile(r"(?<=\d)\s+(?=\d)")
"""Two numbers side by side stay two: `from 5 8 9` is not `from 58 9`."""
_IGNORED = re.compile(r"(?<!\d)[.,]|[.,](?!\d)|[^\w+\-*/=<>^()\[\].,]|_")


def normalise(text: str) -> str:
    """Lower-case letters, digits, signs, brackets, and points or commas inside numbers; typesetting and spaces go."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-")
    folded = _TYPESETTING.sub(lambda match: "frac" if match.group().endswith("frac") else "", folded)
    return _IGNORED.sub("", _APART.sub(",", folded))


def keys(problem: Problem) -> tuple[Key, ...]:
    """Every key of a problem; two problems that share one are the same."""
    found: list[Key] = [("text", normalise(problem.question))]
    if "numbers" in problem.data and "target" in problem.data:
        found.append(("countdown", str(problem.data["target"]), tuple(sorted(problem.data["numbers"]))))
    return tuple(found)
