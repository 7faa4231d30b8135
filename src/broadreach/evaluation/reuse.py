"""Sample stores that another run has already filled: found by their header, copied, never drawn twice."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from broadreach.evaluation.store import StoreHeader, read_header
from broadreach.runs.files import explained_disk_errors
from broadreach.types import UserError

BESIDE = ("problems.jsonl", "entropy.json")
"""What goes along with samples.jsonl; entropy.json names the stores it was measured on, and is checked when read."""


def find_equal(header: StoreHeader, runs: Path, but: Path) -> Path | None:
    """A complete store with this header in the eval/ folder of a run in `runs`, other than `but`."""
    for path in sorted(runs.glob("*/eval/**/samples.jsonl")):
        if path.resolve() != but.resolve() and is_complete(path, header):
            return path
    return None


def is_complete(path: Path, header: StoreHeader) -> bool:
    """Whether a store of exactly these settings holds every response."""
    try:
        if read_header(path) != header:
            return False
        with open(path, "rb") as file:
            return sum(line.endswith(b"\n") for line in file) == 1 + header.problems * header.samples
    except (UserError, OSError):
        return False


def copy_store(source: Path, target: Path) -> None:
    """Copy a store and what lies beside it; samples.jsonl comes last, written aside and renamed."""
    with explained_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        for name in (*BESIDE, source.name):
            if (source.parent / name).exists():
                aside = target.with_name(f".{name}.{os.getpid()}.tmp")
                shutil.copyfile(source.parent / name, aside)
                os.replace(aside, target.with_name(name))
