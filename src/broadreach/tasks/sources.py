"""Rows of a data set from a local file or the Hugging Face Hub, with the row count asserted."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from broadreach.tasks.hub_access import offline, unreachable
from broadreach.types import UserError

Row: TypeAlias = dict[str, Any]
Where: TypeAlias = Literal["auto", "local", "hub"]
"""auto: the local file when it is there, otherwise the Hub."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows of one split are, and how many there must be."""

    rows: int | tuple[int, ...] | None
    """Rows of this split (or the numbers its copies have); any other is refused (verifiers.md, rows 84 and 85).
    None: not known."""
    hub: str | None = None
    """Data set id on the Hub."""
    config: str | None = None
    split: str = "test"
    """Hub split; `a+b` joins two."""
    local: str | None = None
    """Path below the data directory (layout of BROADREACH_DATA)."""
    local_rows: int | None = None
    """Rows of the local file when it is a subset or holds several splits."""
    keep: Callable[[Row], bool] | None = None
    """Which rows of the local file are this split."""
    gated: bool = False


def data_dir() -> Path | None:
    """The local data directory: BROADREACH_DATA, else ../shared/data beside the working directory or the repository."""
    named = os.environ.get("BROADREACH_DATA")
    if named is not None:
        path = Path(named).expanduser()
        if not path.is_dir():
            raise UserError(
                f"BROADREACH_DATA={named} is not a directory; point it at the data or unset it to use the Hub"
            )
        return path
    repository = Path(__file__).resolve().parents[3]
    for base in (Path.cwd(), repository):
        path = base.parent / "shared" / "data"
        if path.is_dir():
            return path
    return None


def read(source: Source, where: Where = "auto") -> tuple[list[Row], str]:
    """The rows of `source` and where they came from; UserError says which file or Hub id is missing and what to do."""
    if where not in ("auto", "local", "hub"):
        raise UserError(f"task option source = {where!r}: choose auto, local or hub")
    path = local_path(source)
    if where == "local" or (where == "auto" and path is not None and path.exists()):
        return _read_local(source, path)
    if source.hub is None:
        raise UserError(f"{_wanted(source, path)} not found, and no Hub data set holds it; {_how_to_set(source)}")
    return read_hub(source), f"hub:{source.hub}"


def local_path(source: Source) -> Path | None:
    """Where the local file would be; None when there is no data directory or no local layout."""
    base = data_dir()
    return base / source.local if base is not None and source.local is not None else None


def available(source: Source) -> bool:
    """Whether the rows are on this machine (nothing is loaded, and the Hub is not asked)."""
    path = local_path(source)
    return path is not None and path.exists()


def read_file(path: Path) -> list[Row]:
    """Rows of a .jsonl, .json, .csv or .parquet file; UserError names the broken line."""
    if not path.exists():
        raise UserError(f"data file {path} does not exist")
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix == ".json":
        return _read_json(path)
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]
    return [row for _, row in numbered_lines(path)]


def numbered_lines(path: Path) -> list[tuple[int, Row]]:
    """(line number from 1, row) of a JSONL file, blank lines skipped; UserError with the number of a broken line."""
    rows: list[tuple[int, Row]] = []
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    rows.append((number, _parse_line(path, number, line)))
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: line {len(rows) + 1} or later is not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); give a readable JSONL file") from None
    return rows


def read_hub(source: Source) -> list[Row]:
    """The rows from the Hub; UserError for a missing package, no network, no access, or another row count."""
    try:
        import datasets
    except ImportError:
        raise UserError(
            f"data set {source.hub}: the package `datasets` is missing; pip install 'broadreach[data]'"
        ) from None
    assert source.hub is not None
    silent = None if Path(source.hub).exists() else unreachable()
    try:
        # Gated items are streamed: no copy in clear stays in a cache on disk.
        with offline() if silent else nullcontext():
            loaded = datasets.load_dataset(source.hub, source.config, split=source.split, streaming=source.gated)
            rows = [dict(row) for row in loaded]
    except Exception as error:  # the Hub client raises many unrelated kinds
        raise UserError(_explain(source, error, silent)) from None
    _assert_count(f"Hub data set {_hub_name(source)}", len(rows), source.rows)
    return rows


def _read_local(source: Source, path: Path | None) -> tuple[list[Row], str]:
    if path is None or not path.exists():
        raise UserError(f"{_wanted(source, path)} not found; {_how_to_set(source)}")
    rows = read_file(path)
    if source.keep is not None:
        _assert_count(str(path), len(rows), source.local_rows or len(rows))
        rows = [row for row in rows if source.keep(row)]
        _assert_count(f"{path}, split {source.split}", len(rows), source.rows)
    else:
        _assert_count(str(path), len(rows), source.local_rows or source.rows)
    return rows, f"local:{source.local}"


def _assert_count(what: str, found: int, expected: int | tuple[int, ...] | None) -> None:
    wanted = (expected,) if isinstance(expected, int) else expected
    if wanted is not None and found not in wanted:
        numbers = " or ".join(map(str, wanted))
        raise UserError(f"{what}: {found} rows instead of {numbers}; this is another or a damaged copy, fetch it again")


def _parse_line(path: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise UserError(f"{path}: line {number} is not valid JSON ({reason}); correct or remove the line") from None
    if not isinstance(row, dict):
        raise UserError(f"{path}: line {number} is a JSON {type(row).__name__}, not an object with columns")
    return row


def _read_json(path: Path) -> list[Row]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: line {error.lineno} is not valid JSON ({error.msg}); fetch the file again") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: expected a JSON list of objects")
    return rows


def _read_parquet(path: Path) -> list[Row]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise UserError(f"{path}: the package `pyarrow` is missing; pip install 'broadreach[data]'") from None
    try:
        return pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise UserError(
            f"{path} is not a readable Parquet file ({str(error).splitlines()[0]}); fetch it again"
        ) from None


def _hub_name(source: Source) -> str:
    config = f" (config {source.config})" if source.config else ""
    return f"{source.hub}{config}, split {source.split}"


def _wanted(source: Source, path: Path | None) -> str:
    if source.local is None:
        return f"a local copy of {source.hub}"
    return f"data file {path or source.local}"


def _how_to_set(source: Source) -> str:
    if source.hub is not None:
        return f"set BROADREACH_DATA to a directory that holds it, or use source = 'hub' ({source.hub})"
    return "set BROADREACH_DATA to a directory that holds it"


def _explain(source: Source, error: Exception, silent: str | None) -> str:
    """What went wrong: no network, no access, or neither (then the client's own words)."""
    text = f"{type(error).__name__}: {error}".replace("\n", " ")[:160]
    if silent is not None:
        local = f", or put {source.local} below BROADREACH_DATA" if source.local else ""
        terms = "; it is gated: its terms must be accepted there, too" if source.gated else ""
        return (
            f"Hub data set {_hub_name(source)} could not be loaded: no network, and no copy in the cache ({silent}); "
            f"connect and run again{local}{terms}"
        )
    denied = any(word in text.lower() for word in ("gated", "cannot be accessed", "401", "403", "authenticat"))
    if denied and (source.gated or "gated" in text.lower()):
        return (
            f"Hub data set {_hub_name(source)} is gated: accept its terms at "
            f"https://huggingface.co/datasets/{source.hub}, then `hf auth login` or set HF_TOKEN ({text})"
        )
    local = f", or put {source.local} below BROADREACH_DATA" if source.local else ""
    return f"Hub data set {_hub_name(source)} could not be loaded ({text}); check id and network{local}"


def text_of(row: Mapping[str, Any], column: str) -> str:
    """The column as text: whole floats lose their `.0`, None becomes the empty string (a bad gold, counted later)."""
    value = row.get(column)
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)
