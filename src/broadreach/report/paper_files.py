"""The measured items of the paper as files: one tidy CSV an item, the statements, the notes, and how they were made."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from broadreach.evaluation.summary import Json
from broadreach.report.claims import CONFIRMED, REFUTED, UNDECIDED, UNMEASURED, Claim
from broadreach.report.files import csv_text, text_of
from broadreach.report.paper_item import Entry, Origin, PaperItem
from broadreach.report.paper_rows import Row, read_rows
from broadreach.runs.files import explained_disk_errors, write_atomically
from broadreach.types import UserError

ENTRY_COLUMNS = ("origin", "panel", "row", "column", "x", "value", "low", "high", "unit")
STATEMENT_COLUMNS = ("item", "number", "statement", "verdict", "evidence")
NOTE_COLUMNS = ("item", "note")
VERDICTS = (CONFIRMED, REFUTED, UNDECIDED, UNMEASURED)
DIGITS = 6
"""Significant digits of a number in a file."""


def write_item(item: PaperItem, folder: str | Path) -> Path:
    """Write folder/<id>.csv, a line an entry and numbers to six significant digits; return its path."""
    path = _ready(folder) / f"{item.id}.csv"
    write_atomically(path, entries_csv(item.entries))
    return path


def entries_csv(entries: Iterable[Entry]) -> str:
    """Entries as CSV text, the header first."""
    return csv_text([ENTRY_COLUMNS, *map(_entry_line, entries)])


def read_entries(path: str | Path, needs_x: bool = False) -> tuple[Entry, ...]:
    """The entries of one file, in its order; UserError naming file, line and column when it is malformed or absent.

    `needs_x`: every line must have its place on the horizontal axis, as figures need.
    """
    rows = read_rows(Path(path), ENTRY_COLUMNS)
    if rows is None:
        raise UserError(f"{path} does not exist; measure it first: broadreach paper run {Path(path).stem}")
    first: dict[tuple[object, ...], int] = {}
    entries = []
    for row in rows:
        entry = _entry(row, needs_x)
        key = (entry.origin, entry.panel, entry.row, entry.column, entry.x)
        if key in first:
            raise row.wrong("column", f"the same place as line {first[key]}", "keep one of the two")
        first[key] = row.line
        entries.append(entry)
    return tuple(entries)


def write_statements(items: Iterable[PaperItem], folder: str | Path) -> None:
    """Write folder/statements.csv and notes.csv; what they hold of other items stays."""
    given, place = tuple(items), _ready(folder)
    for name, columns, lines in (
        ("statements.csv", STATEMENT_COLUMNS, _statement_lines(given)),
        ("notes.csv", NOTE_COLUMNS, [[item.id, note] for item in given for note in item.notes]),
    ):
        ids = {item.id for item in given}
        rows = read_rows(place / name, columns) or []
        kept = [list(row.cells.values()) for row in rows if row.cells["item"] not in ids]
        write_atomically(place / name, csv_text([columns, *kept, *lines]))


def read_statements(folder: str | Path) -> dict[str, tuple[Claim, ...]]:
    """Item -> its statements; empty where there is no statements.csv, UserError where it is malformed."""
    found: dict[str, list[Claim]] = {}
    for row in read_rows(Path(folder) / "statements.csv", STATEMENT_COLUMNS) or []:
        claim = Claim(row.text("number"), row.text("statement"), row.choice("verdict", VERDICTS), row.cells["evidence"])
        found.setdefault(row.text("item"), []).append(claim)
    return {item: tuple(claims) for item, claims in found.items()}


def read_notes(folder: str | Path) -> dict[str, tuple[str, ...]]:
    """Item -> its notes; empty where there is no notes.csv, UserError where it is malformed."""
    found: dict[str, list[str]] = {}
    for row in read_rows(Path(folder) / "notes.csv", NOTE_COLUMNS) or []:
        found.setdefault(row.text("item"), []).append(row.text("note"))
    return {item: tuple(notes) for item, notes in found.items()}


def read_items(folder: str | Path, blank_items: Sequence[PaperItem]) -> list[PaperItem]:
    """The items with the entries, statements and notes that a folder has of them.

    An item without a file stays as it is; published numbers that its file lacks stay too. UserError naming file,
    line and column when a file is malformed.
    """
    statements, notes = read_statements(folder), read_notes(folder)
    return [
        replace(
            item,
            entries=_entries_of(item, Path(folder) / f"{item.id}.csv"),
            statements=statements.get(item.id, item.statements),
            notes=notes.get(item.id, item.notes),
        )
        for item in blank_items
    ]


def write_about(about: Json, folder: str | Path) -> None:
    """Write folder/about.json: scale, words, command, commit, hardware, seconds (of each part), date."""
    write_atomically(_ready(folder) / "about.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def read_about(folder: str | Path) -> Json:
    """folder/about.json, empty where there is none; UserError when it is not a JSON object."""
    path = Path(folder) / "about.json"
    text = text_of(path)
    if text is None:
        return {}
    try:
        about = json.loads(text)
    except ValueError as error:
        raise UserError(f"{path} is not JSON ({error}); restore it from a copy, or delete it") from None
    if not isinstance(about, dict):
        raise UserError(f"{path} must hold one JSON object; restore it from a copy, or delete it")
    return about


def _entries_of(item: PaperItem, path: Path) -> tuple[Entry, ...]:
    if text_of(path) is None:
        return item.entries
    found = read_entries(path, needs_x=item.kind != "table")
    if any(entry.origin == "published" for entry in found):
        return found
    return found + tuple(entry for entry in item.entries if entry.origin == "published")


def _entry(row: Row, needs_x: bool) -> Entry:
    origin = cast(Origin, row.choice("origin", get_args(Origin)))
    x, value, low, high = (row.number(name) for name in ("x", "value", "low", "high"))
    if x is None and needs_x:
        raise row.wrong("x", "is empty", "a figure needs the place on its horizontal axis")
    if (low is None) != (high is None):
        raise row.wrong("low" if low is None else "high", "is empty", "give both ends of the interval, or none")
    if low is not None and high is not None and low > high:
        raise row.wrong("low", f"{low:g} lies above high {high:g}", "exchange them")
    cells = row.cells
    return Entry(origin, cells["panel"], row.text("row"), row.text("column"), value, low, high, x, row.text("unit"))


def _statement_lines(items: Iterable[PaperItem]) -> list[list[str]]:
    return [[item.id, c.number, c.statement, c.verdict, c.evidence] for item in items for c in item.statements]


def _entry_line(entry: Entry) -> list[str]:
    assert entry.row and entry.column and entry.unit, f"an entry needs a row, a column and a unit: {entry}"
    numbers = (_written(number) for number in (entry.x, entry.value, entry.low, entry.high))
    return [entry.origin, entry.panel, entry.row, entry.column, *numbers, entry.unit]


def _written(value: float | None) -> str:
    if value is None:
        return ""
    assert math.isfinite(value), "an unknown number is None"
    return f"{value:.{DIGITS}g}"


def _ready(folder: str | Path) -> Path:
    path = Path(folder)
    with explained_disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return path
