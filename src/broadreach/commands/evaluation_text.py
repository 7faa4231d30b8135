"""The words in which a paired comparison is told."""

from __future__ import annotations

from typing import Any

from broadreach.report.words import verdict


def paired_lines(comparison: dict[str, Any]) -> list[str]:
    """Gain in Pass@1 and in coverage, each with its interval and what the interval says."""
    largest = comparison["samples"]
    chosen = sorted({1, largest})
    lines = [_line(f"Pass@{k}", comparison["pass_at_k"][k - 1]) for k in chosen]
    solved = comparison["solved"]
    return [
        *lines,
        f"problems solved at least once: both {solved['both']}, only before {solved['only_a']}, "
        f"only after {solved['only_b']}, neither {solved['neither']}",
    ]


def _line(name: str, entry: dict[str, float]) -> str:
    word = verdict(entry).word
    return f"change   {name} {entry['value']:+.1%} [{entry['low']:+.1%}, {entry['high']:+.1%}] paired: {word}"
