"""One figure, drawn twice: inline SVG in the page's own colours, and PDF in print colours."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

Palette: TypeAlias = Mapping[str, str]

PRINT: Palette = {
    "ink": "#1c1f23",
    "muted": "#57606a",
    "grid": "#dfe3e8",
    "base": "#6e7781",
    "es": "#0a62c9",
    "noise": "#bc4c00",
    "good": "#1a7f37",
    "extra": "#8250df",
}
"""Colours of the PDF; the page has light and dark ones under the same names (templates/style.css)."""

PLACEHOLDERS: Palette = {name: f"#0a0b{index:02x}" for index, name in enumerate(PRINT)}
"""Colours that no figure uses, replaced by the page's CSS variables."""

SIZE = (5.2, 3.2)
"""Inches: text stays legible on a phone, where the figure shrinks to the screen."""

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.pad": 6,
    "figure.constrained_layout.use": True,
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as data and a drawing rule."""

    name: str
    title: str
    description: str
    """What it shows, in words, for readers who cannot see it."""
    columns: Mapping[str, Sequence[Any]]
    """The plotted numbers, for the CSV file."""
    draw: Callable[[Any, Palette], None]
    """Draws onto matplotlib axes in the colours of a palette."""


def to_svg(figure: Figure) -> str:
    """Inline SVG: text as text in the page's font, colours as CSS variables, title and description for readers."""
    buffer = io.StringIO()
    _render(figure, PLACEHOLDERS, buffer, "svg", {"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family: [^;\"]*;? ?", "", text)
    for name, colour in PLACEHOLDERS.items():
        text = text.replace(colour, f"var(--{name})")
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None, "matplotlib writes a viewBox"
    body = _own_ids(text[text.index(">") + 1 :], figure.name)
    ids = f"{figure.name}-title {figure.name}-desc"
    return (
        f'<svg {box.group()} role="img" aria-labelledby="{ids}" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f'<title id="{figure.name}-title">{escape(figure.title)}</title>'
        f'<desc id="{figure.name}-desc">{escape(figure.description)}</desc>{body}'
    )


def _own_ids(svg: str, name: str) -> str:
    """Prefix the ids that are referred to and drop the others: several figures share one page."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(
        r' id="([^"]*)"', lambda match: f' id="{name}-{match.group(1)}"' if match.group(1) in used else "", svg
    )
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)


def save_pdf(figure: Figure, path: Path) -> None:
    """The figure as PDF, in print colours."""
    with open(path, "wb") as file:
        _render(figure, PRINT, file, "pdf", {"CreationDate": None})


def to_csv(figure: Figure) -> str:
    """The plotted numbers as CSV text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(zip(*figure.columns.values(), strict=True))
    return buffer.getvalue()


def _render(figure: Figure, palette: Palette, file: Any, kind: str, metadata: Mapping[str, None]) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    colours = {
        "svg.hashsalt": figure.name,
        "text.color": palette["ink"],
        "axes.labelcolor": palette["muted"],
        "axes.edgecolor": palette["grid"],
        "grid.color": palette["grid"],
        "xtick.color": palette["muted"],
        "ytick.color": palette["muted"],
        "xtick.labelcolor": palette["muted"],
        "ytick.labelcolor": palette["muted"],
        "legend.labelcolor": palette["ink"],
    }
    with rc_context({**_STYLE, **colours}):
        canvas = Canvas(figsize=SIZE)
        figure.draw(canvas.add_subplot(), palette)
        canvas.savefig(file, format=kind, transparent=True, metadata=dict(metadata))
