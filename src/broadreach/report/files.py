"""The small files that a report reads, and the CSV that it offers."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broadreach.evaluation.summary import Json
from broadreach.types import UserError


def text_of(path: Path) -> str | None:
    """The content of a file, None when there is none; UserError when it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); restore it from a copy") from None


def object_in(text: str | None) -> Json:
    """A JSON object, empty for anything else."""
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def csv_text(rows: Sequence[Sequence[Any]]) -> str:
    """Rows, the header first, as CSV."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def csv_link(text: str) -> str:
    """A link that holds its own data."""
    return "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
