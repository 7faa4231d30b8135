"""What has been done already: a small file for each finished cell, with what it was asked and how long it took."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broadreach.experiments.cells import Cell, Job, Watcher
from broadreach.runs.files import write_atomically


class Stamps:
    """The stamps of one folder; a cell counts as finished while its commands and its inputs are the same."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Any] | None:
        """The stamp of a cell; None where it has not finished."""
        path = self._path(name)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def unfinished(self, cells: Sequence[Cell]) -> list[Cell]:
        """Cells that must run: not finished, asked something else, or with an input that must run."""
        waiting: dict[str, Cell] = {}
        for cell in cells:
            stamp = self.read(cell.name)
            if stamp is None or stamp.get("asked") != self._asked(cell) or any(name in waiting for name in cell.after):
                waiting[cell.name] = cell
        return list(waiting.values())

    def write(self, cell: Cell, seconds: float, began: float, ended_well: bool) -> None:
        """Leave the stamp of a cell; its seconds are of all its jobs and of earlier tries that did not end well.

        A cell that ran again because an input did, and found its work done, keeps the seconds that the work took.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self.read(cell.name) or {}
        spent = float(before.get("seconds", 0.0))
        seconds = max(spent, seconds) if before.get("asked") else spent + seconds
        stamp = {"asked": self._asked(cell) if ended_well else "", "seconds": round(seconds, 1), "began": began}
        write_atomically(self._path(cell.name), json.dumps(stamp) + "\n")

    def seconds(self) -> dict[str, float]:
        """Cell -> the seconds it took."""
        found = {}
        for path in sorted(self.folder.glob("*.json")):
            stamp = self.read(path.stem)
            if stamp is not None:
                found[path.stem] = float(stamp["seconds"])
        return found

    def _asked(self, cell: Cell) -> str:
        inputs = [(name, (self.read(name) or {}).get("began")) for name in cell.after]
        text = json.dumps([[job.arguments for job in cell.jobs], inputs])
        return hashlib.sha256(text.encode()).hexdigest()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


class Stamping:
    """A `Watcher` that passes everything on and leaves a stamp for every cell that ends."""

    def __init__(self, stamps: Stamps, watcher: Watcher) -> None:
        self.stamps, self.watcher = stamps, watcher
        self.began: dict[str, float] = {}

    def started(self, cell: Cell, job: Job) -> None:
        """The first job starts the clock."""
        self.began.setdefault(cell.name, time.time())
        self.watcher.started(cell, job)

    def event(self, cell: Cell, job: Job, event: Mapping[str, Any]) -> None:
        """Passed on."""
        self.watcher.event(cell, job, event)

    def ended(self, cell: Cell, failure: str | None) -> None:
        """Stamp it."""
        began = self.began.get(cell.name)
        if began is not None:
            self.stamps.write(cell, time.time() - began, began, failure is None)
        self.watcher.ended(cell, failure)
