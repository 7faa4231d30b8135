"""How each method looks in every figure: a colour, a line and a marker, so that colour is never the only sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broadreach.report.comparison_data import Comparison


@dataclass(frozen=True, slots=True)
class Style:
    """A colour of the palette, a line style and a marker of matplotlib."""

    colour: str
    line: Any
    marker: str


BASE_STYLE = Style("base", (0, (1, 1.2)), "s")
METHOD_STYLES = {
    "es": Style("es", "-", "o"),
    "grpo": Style("noise", (0, (5, 1.6)), "^"),
    "es->grpo": Style("extra", (0, (6, 1.5, 1.2, 1.5)), "D"),
    "grpo->es": Style("good", (0, (3, 1.2, 1, 1.2, 1, 1.2)), "v"),
}
SPARE_STYLES = (
    Style("muted", "-", "P"),
    Style("ink", (0, (5, 1.6)), "X"),
    Style("es", (0, (2, 1.2)), "<"),
    Style("noise", "-", ">"),
    Style("extra", "-", "h"),
    Style("good", "-", "p"),
)


def styles(data: Comparison) -> dict[str, Style]:
    """Method key (and "base") -> style: the usual methods always look alike, the others take what is left."""
    found = {"base": BASE_STYLE}
    free = list(SPARE_STYLES)
    taken: set[str] = set()
    for number, method in enumerate(data.methods):
        if method.name in METHOD_STYLES and method.name not in taken:
            found[method.key] = METHOD_STYLES[method.name]
            taken.add(method.name)
        else:
            found[method.key] = free.pop(0) if free else SPARE_STYLES[number % len(SPARE_STYLES)]
    return found


def labels(data: Comparison) -> dict[str, str]:
    """Method key (and "base") -> how the page calls it."""
    return {"base": "Base", **{method.key: method.label for method in data.methods}}
