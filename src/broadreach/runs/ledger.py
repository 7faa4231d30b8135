"""The ledger: one JSON line a step, append-only; with the base model it rebuilds the weights of any step.

Line 0 is the header (base digest, seed, noise format). Every line ends with `chain`, an xxh3-64 of the line's content
and the chain before it, so an edited line is found. A last line without its newline is a torn write: it is dropped.
Nothing in the ledger depends on time or machine, so two runs of the same settings have equal ledgers.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from broadreach.runs.files import explained_disk_errors, sync
from broadreach.types import StepRecord, Update, UserError

LEDGER_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LedgerHeader:
    """What the steps below it stand on."""

    seed: int
    base_digest: str
    """xxh3-128 of the base centre."""
    noise_format: int
    table_digest: str
    precision: str
    model_dtype: str
    estimator: str


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One step and the digest of the centre after it (None where `run.digest_every` left it out)."""

    record: StepRecord
    digest: str | None


@dataclass(frozen=True, slots=True)
class LedgerContents:
    """A whole ledger, read and verified."""

    header: LedgerHeader | None
    entries: tuple[LedgerEntry, ...]
    torn: bool
    """The last line was incomplete and is not among the entries."""
    valid_bytes: int
    chain: str


def read_ledger(path: Path) -> LedgerContents:
    """Read and verify a ledger; UserError names the first line that was edited or is out of order."""
    data = path.read_bytes() if path.exists() else b""
    lines = data.split(b"\n")
    tail, lines = lines[-1], lines[:-1]
    header: LedgerHeader | None = None
    entries: list[LedgerEntry] = []
    chain = ""
    for number, line in enumerate(lines, start=1):
        row, chain = _verified(line, chain, path, number)
        if number == 1:
            header = _header(row, path)
        else:
            entries.append(_entry(row, len(entries) + 1, path, number))
    return LedgerContents(header, tuple(entries), bool(tail), len(data) - len(tail), chain)


class Ledger:
    """An open ledger that lines are appended to, each synced before the call returns."""

    def __init__(self, path: Path, contents: LedgerContents) -> None:
        self.path = path
        self._chain = contents.chain
        self._valid_bytes = contents.valid_bytes

    def open(self) -> Ledger:
        """Open for appending, cutting a torn tail off first."""
        with explained_disk_errors(self.path):
            self._file = open(self.path, "ab")  # noqa: SIM115
            self._file.truncate(self._valid_bytes)
        return self

    def close(self) -> None:
        """Close the file; nothing is pending, since each append was synced."""
        self._file.close()

    def write_header(self, header: LedgerHeader) -> None:
        """Append line 0."""
        self._append({"format": LEDGER_FORMAT, **{name: getattr(header, name) for name in header.__slots__}})

    def append(self, entry: LedgerEntry) -> None:
        """Append one step and sync it to the disk."""
        record = entry.record
        row: dict[str, Any] = {
            "step": record.step,
            "sigma": record.sigma,
            "alpha": record.alpha,
            "rewards": list(record.rewards),
            "update": None,
            "problems": list(record.problems),
            "digest": entry.digest,
        }
        if record.update is not None:
            row["update"] = {
                "coefficients": list(record.update.coefficients),
                "shift": record.update.shift,
                "anchor_decay": record.update.anchor_decay,
            }
        self._append(row)

    def _append(self, row: dict[str, Any]) -> None:
        chain = _chain(self._chain, row)
        line = json.dumps({**row, "chain": chain}, separators=(",", ":")).encode() + b"\n"
        with explained_disk_errors(self.path):
            try:
                self._file.write(line)
                sync(self._file)
            except OSError:
                os.ftruncate(self._file.fileno(), self._valid_bytes)
                raise
        self._valid_bytes += len(line)
        self._chain = chain


def _chain(previous: str, row: dict[str, Any]) -> str:
    content = json.dumps(row, separators=(",", ":"))
    return xxhash.xxh3_64_hexdigest(f"{previous}\n{content}".encode())


def _verified(line: bytes, chain: str, path: Path, number: int) -> tuple[dict[str, Any], str]:
    try:
        row = json.loads(line)
        expected = row.pop("chain")
    except (ValueError, KeyError, AttributeError):
        raise UserError(_edited(path, number)) from None
    actual = _chain(chain, row)
    if actual != expected:
        raise UserError(_edited(path, number))
    return row, actual


def _edited(path: Path, number: int) -> str:
    return (
        f"{path} line {number} was changed after it was written (its checksum does not match): "
        "the run cannot be replayed or resumed from it; restore the file from a copy, or start a new run"
    )


def _header(row: dict[str, Any], path: Path) -> LedgerHeader:
    if row.pop("format", None) != LEDGER_FORMAT:
        raise UserError(
            f"{path} is not a ledger of format {LEDGER_FORMAT}: it was written by another version of broadreach"
        )
    return LedgerHeader(**row)


def _entry(row: dict[str, Any], expected_step: int, path: Path, number: int) -> LedgerEntry:
    if row["step"] != expected_step:
        raise UserError(
            f"{path} line {number}: step {row['step']} where step {expected_step} belongs; a line is missing"
        )
    update = None
    if row["update"] is not None:
        coefficients = tuple(row["update"]["coefficients"])
        update = Update(
            tuple(range(len(coefficients))),
            coefficients,
            row["update"]["shift"],
            row["update"]["anchor_decay"],
        )
    record = StepRecord(row["step"], row["sigma"], row["alpha"], tuple(row["rewards"]), update, tuple(row["problems"]))
    return LedgerEntry(record, row["digest"])
