"""CSV files with a fixed header, read strictly: what is wrong is named with its file, line and column."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broadreach.report.files import text_of
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a file."""

    path: Path
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """A cell that must not be empty."""
        if not self.cells[column].strip():
            raise self.wrong(column, "is empty", "fill it")
        return self.cells[column]

    def choice(self, column: str, known: Sequence[str]) -> str:
        """A cell that must be one of the known words."""
        if self.cells[column] not in known:
            raise self.wrong(column, f"{self.cells[column]!r} is not known", f"use one of: {', '.join(known)}")
        return self.cells[column]

    def number(self, column: str) -> float | None:
        """A finite number; None where the cell is empty."""
        text = self.cells[column]
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.wrong(column, f"{text!r} is no finite number", "write a number, or leave it empty")
        return value

    def wrong(self, column: str, what: str, advice: str) -> UserError:
        """The error for one cell."""
        return UserError(f"{self.path}, line {self.line}, column {column}: {what}; {advice}")


def read_rows(path: Path, columns: Sequence[str]) -> list[Row] | None:
    """Every line below the header, None when there is no file; UserError on another header or a ragged line."""
    text = text_of(path)
    if text is None:
        return None
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[Row] = []
    try:
        header = next(reader, [])
        if tuple(header) != tuple(columns):
            raise UserError(f"{path}, line 1: the columns must be {','.join(columns)}, not {','.join(header)!r}")
        start = reader.line_num + 1
        for cells in reader:
            if len(cells) != len(columns):
                missing = (
                    f"column {columns[len(cells)]} is missing" if len(cells) < len(columns) else "too many columns"
                )
                raise UserError(
                    f"{path}, line {start}: {missing} ({len(cells)} of {len(columns)}); quote texts that hold a comma"
                )
            rows.append(Row(path, start, dict(zip(columns, cells, strict=True))))
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}; restore the file from a copy") from None
    return rows
