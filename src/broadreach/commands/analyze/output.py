"""What every analysis leaves: OUT/<name>.json with settings and command, OUT/<name>.csv with tidy rows, a table."""

from __future__ import annotations

import csv
import io
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
WIDTH = 180
"""Tables are not squeezed below this: a narrow terminal wraps whole lines."""


def write_analysis(out: Path, name: str, values: Mapping[str, Any], rows: Sequence[Row]) -> tuple[Path, Path]:
    """Write OUT/name.json (`values` and the command) and OUT/name.csv (one line a row); returns both paths.

    A number that is not finite becomes null in JSON and empty in CSV. UserError when the place cannot be written.
    """
    from broadreach.evaluation.summary import write_json
    from broadreach.runs.files import explained_disk_errors, write_atomically

    with explained_disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["broadreach", *sys.argv[1:]])
    write_json({"version": 1, "analysis": name, "command": command, **_plain(values)}, out / f"{name}.json")
    text = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    write_atomically(out / f"{name}.csv", text.getvalue())
    return out / f"{name}.json", out / f"{name}.csv"


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A short table on the terminal; the first column is text, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    console.print(table, soft_wrap=True)


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
