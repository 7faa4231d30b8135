"""How the items of the paper were made: commands, commit, hardware, seconds of each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broadreach.evaluation.summary import Json
from broadreach.report.words import percent, seconds

ROWS = (("Scale", "scale"), ("What that is", "words"), ("Commit", "commit"), ("Hardware", "hardware"), ("Date", "date"))
"""(label, key of about.json), in this order; other keys follow under their own names."""
_APART = ("command", "seconds")


def about_rows(about: Json) -> list[tuple[str, str]]:
    """(label, value) of what about.json says, but for commands and seconds."""
    named = {key for _, key in ROWS} | set(_APART)
    rest = [(key.replace("_", " ").capitalize(), key) for key in about if key not in named]
    return [(label, text) for label, key in (*ROWS, *rest) if (text := _plain(about.get(key)))]


def second_rows(about: Json) -> list[tuple[str, str, str]]:
    """(part, time, share of all), the longest first, the total last; empty where nothing was timed."""
    held = about.get("seconds")
    timed = {str(k): float(v) for k, v in held.items() if _is_number(v)} if isinstance(held, Mapping) else {}
    total = sum(timed.values())
    if not total:
        return []
    ordered = sorted(timed.items(), key=lambda one: -one[1])
    return [*((name, seconds(spent), percent(spent / total)) for name, spent in ordered), ("All", seconds(total), "")]


def commands(measured: Sequence[str], about: Json) -> list[str]:
    """How to make this again."""
    commit, ran, scale = about.get("commit"), about.get("command"), about.get("scale")
    again = f" --scale {scale}" if scale else ""
    ran_lines = [ran] if isinstance(ran, str) else list(ran) if isinstance(ran, (list, tuple)) else []
    return [
        *([f"git checkout {str(commit).removesuffix('-dirty')}"] if commit else []),
        *(map(str, ran_lines) if ran_lines else [f"broadreach paper run {name}{again}" for name in measured]),
        f"broadreach paper report{again}",
    ]


def _plain(value: Any) -> str:
    """A value in words; empty for nothing."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_plain(held)}" for key, held in value.items() if held not in (None, ""))
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
