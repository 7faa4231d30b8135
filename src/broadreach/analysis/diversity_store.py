"""What an analysis has sampled so far: one JSON line a unit of work, so that a killed analysis goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from broadreach.runs.files import explained_disk_errors, lock_or_refuse, sync
from broadreach.types import UserError


class UnitStore:
    """Append-only JSONL file of named units under one header; use it in a `with` block.

    Entering drops a torn last line, and refuses a file of other settings (UserError that names the first difference).
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self.header: dict[str, Any] = json.loads(json.dumps(dict(header)))
        self._units: dict[str, Any] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> UnitStore:
        with explained_disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b")
        try:
            lock_or_refuse(self._file, self.path)
            self._read(self._file)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __contains__(self, name: str) -> bool:
        return name in self._units

    def get(self, name: str) -> Any:
        """The value of a finished unit."""
        return self._units[name]

    def add(self, name: str, value: Any) -> None:
        """Store one finished unit, synced to the disk."""
        assert name not in self._units, "every unit is stored once"
        self._append({"unit": name, "value": value})
        self._units[name] = value

    def _append(self, row: Mapping[str, Any]) -> None:
        assert self._file is not None, "the store is used inside a with block"
        with explained_disk_errors(self.path):
            self._file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
            sync(self._file)

    def _read(self, file: IO[bytes]) -> None:
        file.seek(0)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.splitlines()
        os.ftruncate(file.fileno(), len(whole))
        if not lines:
            self._append({"header": self.header})
            return
        try:
            rows = [json.loads(line) for line in lines]
            found = rows[0]["header"]
            self._units = {row["unit"]: row["value"] for row in rows[1:]}
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self.path} is not a store of this analysis; delete it or choose another --out") from None
        for key in self.header.keys() | found.keys():
            if self.header.get(key) != found.get(key):
                raise UserError(
                    f"{self.path} was sampled with {key} = {found.get(key)!r}, now it is {self.header.get(key)!r}: "
                    "delete it, or choose another --out"
                )
