"""Entries as figures: lines with bands, or named points; one pair of axes for each origin, panel and column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from broadreach.report.axes import log_k
from broadreach.report.comparison_figures import line, marks, slug
from broadreach.report.comparison_style import BASE_STYLE, METHOD_STYLES, SPARE_STYLES, Style
from broadreach.report.paper_item import Entry, Origin, PaperItem
from broadreach.report.paper_labels import FAR, place_labels
from broadreach.report.paper_layout import Group, groups, partners
from broadreach.report.paper_words import bracket, common_decimals, level, with_unit
from broadreach.report.svg import Figure, Palette
from broadreach.report.words import number

KNOWN = {"base": BASE_STYLE, **METHOD_STYLES}
"""The methods look as they do in comparisons."""
SPARE = (*(METHOD_STYLES[name] for name in ("es", "grpo", "grpo->es", "es->grpo")), *SPARE_STYLES)
"""What other rows take, those of the methods first."""
MANY = 4
"""More published figures than this, without counterparts of ours, are folded away."""
MARKED = 8
"""Markers on a line, about."""
LEGEND = 2
"""More lines than this are named below the axes."""
SHORT = 14
"""Names of at most this many characters stand three in a row there."""
NAME_WIDTH = 30
"""Characters of a name before it is broken."""


@dataclass(frozen=True, slots=True)
class Axes:
    """One pair of axes, ready to draw."""

    origin: Origin
    panel: str
    figure: Figure
    shape: object
    """What the vertical axis shows, and the names of its lines or points."""


@dataclass(frozen=True, slots=True)
class FigureBlock:
    """Figures that stand together."""

    axes: tuple[Axes, ...]
    folded: str = ""
    """What to say on the lid when they are folded away."""


def figure_blocks(item: PaperItem) -> list[FigureBlock]:
    """The figures of an item: ours with their published counterparts, then ours alone, then the published ones."""
    made = [axes for axes in _all_axes(item) if axes is not None]
    matched = partners(*([axes for axes in made if axes.origin == origin] for origin in ("ours", "published")))
    pairs = [FigureBlock((own, other)) for own, other in matched if own and other]
    ours = tuple(own for own, other in matched if own and not other)
    published = tuple(other for own, other in matched if other and not own)
    lid = f"Published: {len(published)} figures" if len(published) > MANY else ""
    return [
        *pairs,
        *([FigureBlock(ours)] if ours else []),
        *([FigureBlock(published, folded=lid)] if published else []),
    ]


def row_styles(rows: Sequence[str]) -> dict[str, Style]:
    """Row -> style: the paper's methods always look alike, other rows take what no method of these uses."""
    keys = {row: _key(row) for row in rows}
    taken = {KNOWN[key] for key in keys.values() if key in KNOWN}
    free = [style for style in SPARE if style not in taken] or list(SPARE)
    found, place = {}, 0
    for row, key in keys.items():
        if key in KNOWN:
            found[row] = KNOWN[key]
        else:
            found[row] = free[place % len(free)]
            place += 1
    return found


def _key(row: str) -> str:
    """es->grpo for "ES → GRPO (68%)": a row's name without what stands in brackets."""
    return row.partition(" (")[0].lower().replace("→", "->").replace(" ", "")


def _all_axes(item: PaperItem) -> list[Axes | None]:
    names: set[str] = set()
    return [_axes(item, group, names) for group in groups(item.entries, by_column=True)]


def _axes(item: PaperItem, group: Group, names: set[str]) -> Axes | None:
    """None where no number is known."""
    known = [entry for entry in group.entries if entry.value is not None]
    if not known:
        return None
    column = group.entries[0].column
    rows = {row: [e for e in group.entries if e.row == row] for row in dict.fromkeys(e.row for e in group.entries)}
    stem = f"{item.id}-{group.origin}-{slug(f'{group.panel} {column}')[:60]}".strip("-")
    name = next(n for n in [stem, *(f"{stem}-{k}" for k in range(2, len(names) + 3))] if n not in names)
    names.add(name)
    title = ", ".join(part for part in dict.fromkeys((group.panel, column)) if part)
    columns: dict[str, Sequence[Any]] = {
        "row": [e.row for e in group.entries],
        "x": [e.x for e in group.entries],
        **{part: [_or_empty(getattr(e, part)) for e in group.entries] for part in ("value", "low", "high")},
    }
    draw = _lines if item.kind == "lines" else _points
    said = _said_lines(rows) if item.kind == "lines" else _said_points(item, column, rows)
    figure = Figure(name, title, said, columns, lambda axes, palette: draw(item, rows, axes, palette))
    return Axes(group.origin, group.panel, figure, (column, frozenset(map(_key, rows))))


def _lines(item: PaperItem, rows: Mapping[str, list[Entry]], axes: Any, palette: Palette) -> None:
    """A line a row over x, its interval as a band."""
    looks = row_styles(list(rows))
    ordered = {row: sorted(entries, key=lambda e: e.x or 0.0) for row, entries in rows.items()}
    for row, entries in ordered.items():
        xs, lows, highs = ([_or_nan(getattr(e, part)) for e in entries] for part in ("x", "low", "high"))
        axes.fill_between(xs, lows, highs, color=palette[looks[row].colour], alpha=0.14, linewidth=0)
    ks = _all_ks(item, rows)
    for row, entries in ordered.items():
        xs, ys = ([_or_nan(getattr(e, part)) for e in entries] for part in ("x", "value"))
        every = marks([int(x) for x in xs]) if ks else max(1, len(xs) // MARKED)
        line(axes, xs, ys, looks[row], palette, fill(row, NAME_WIDTH), every)
    if ks:
        log_k(axes, ks)
    _name_axes(item, rows, axes)
    if len(rows) > LEGEND:
        columns = 3 if max(map(len, rows)) <= SHORT else 2
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "columnspacing": 1.4}
        axes.legend(**below, ncols=columns, handlelength=3.2)
    elif len(rows) > 1:
        axes.legend(loc="best", handlelength=3.2)


def _points(item: PaperItem, rows: Mapping[str, list[Entry]], axes: Any, palette: Palette) -> None:
    """A point a row, named beside it, its interval upright."""
    looks, named = row_styles(list(rows)), []
    for row, entries in rows.items():
        for entry in entries:
            if entry.value is None or entry.x is None:
                continue
            colour = palette[looks[row].colour]
            if entry.low is not None and entry.high is not None:
                axes.vlines(entry.x, entry.low, entry.high, color=colour, alpha=0.45, linewidth=1.3, zorder=2)
            axes.plot(entry.x, entry.value, linestyle="none", marker=looks[row].marker, color=colour, markersize=8)
            named.append((fill(row, NAME_WIDTH), entry.x, entry.value))
    axes.margins(0.14)
    axes.grid(True, axis="both")
    _name_axes(item, rows, axes)
    places = place_labels(named, axes.get_xlim(), axes.get_ylim())
    for (name, x, y), (right, up, align) in zip(named, places, strict=True):
        style = {"textcoords": "offset points", "ha": align, "va": "center", "fontsize": 9.5, "color": palette["ink"]}
        if math.hypot(right, up) > FAR:
            style["arrowprops"] = {"arrowstyle": "-", "color": palette["muted"], "linewidth": 0.7, "shrinkB": 4}
        axes.annotate(name, (x, y), xytext=(right, up), **style, zorder=4)


def _name_axes(item: PaperItem, rows: Mapping[str, list[Entry]], axes: Any) -> None:
    entry = next(iter(rows.values()))[0]
    axes.set(xlabel=item.x_label, ylabel=with_unit(entry.column, entry.unit))


def _all_ks(item: PaperItem, rows: Mapping[str, list[Entry]]) -> list[int]:
    """Every K where K lies on the horizontal axis, which is logarithmic then; empty otherwise."""
    xs = sorted({e.x for entries in rows.values() for e in entries if e.x is not None})
    fits = item.x_label.partition(" ")[0] == "K" and len(xs) > 1 and xs[0] == 1
    return [int(x) for x in xs] if fits else []


def _said_lines(rows: Mapping[str, list[Entry]]) -> str:
    """From the first to the last known value of every row."""
    known = {row: sorted((e for e in rows[row] if e.value is not None), key=lambda e: e.x or 0.0) for row in rows}
    ends = {row: list(dict.fromkeys((entries[0], entries[-1]))) for row, entries in known.items() if entries}
    digits = common_decimals(entry for both in ends.values() for entry in both)
    parts = [f"{row}: {' → '.join(level(entry, digits) for entry in both)}" for row, both in ends.items()]
    return "; ".join(parts) + "."


def _said_points(item: PaperItem, column: str, rows: Mapping[str, list[Entry]]) -> str:
    """Every point in words."""
    parts = []
    for row, entries in rows.items():
        for e in entries:
            if e.value is not None and e.x is not None:
                digits = common_decimals([e])
                said = f"{level(e, digits)} {bracket(e, digits)}".strip()
                parts.append(f"{row}: {said} at {number(e.x)}")
    return f"{column} against {item.x_label or 'x'}: {'; '.join(parts)}."


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value
