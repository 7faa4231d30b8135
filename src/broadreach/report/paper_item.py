"""One table or figure of the paper as we measured it: tidy rows, statements, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from broadreach.report.claims import Claim

Kind = Literal["table", "lines", "points"]
Origin = Literal["ours", "published"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One number."""

    origin: Origin
    panel: str
    """What one table or one pair of axes shows, for example a model and a task."""
    row: str
    """A row of the table; a line or a point of the figure."""
    column: str
    """A column of the table; what the vertical axis shows."""
    value: float | None
    """None where it is not known."""
    low: float | None = None
    high: float | None = None
    """95 % interval, where there is one."""
    x: float | None = None
    """Place on the horizontal axis; None in tables."""
    unit: str = "percent"
    """"percent", "points", "ratio", "nats", "reward", "count" or "seconds": what value and interval are in."""


@dataclass(frozen=True, slots=True)
class PaperItem:
    """One table or figure."""

    id: str
    """"table-4", "figure-2", "settings", ..."""
    title: str
    shows: str
    """What the paper shows there, in a sentence."""
    kind: Kind
    entries: tuple[Entry, ...]
    """In the order of rows and columns; empty while nothing was measured."""
    statements: tuple[Claim, ...] = ()
    """The paper's statements about it, with what our intervals say."""
    notes: tuple[str, ...] = ()
    """What a reader must know to read it."""
    x_label: str = ""
