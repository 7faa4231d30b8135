"""The run folder: what is where, who holds it, and whether its settings are still the same."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broadreach.config import Config, flatten, load_config, to_toml
from broadreach.runs.files import explained_disk_errors, write_atomically
from broadreach.types import UserError

FREE_TO_CHANGE = ("run.", "eval.", "verify.", "engine.threads")
"""Settings that do not change what a run computes, so a resume may differ in them."""


class RunFolder:
    """Paths of one run; holding it open (`with folder.locked():`) keeps other processes out."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.toml"
        self.environment_file = self.path / "environment.json"
        self.ledger_file = self.path / "ledger.jsonl"
        self.metrics_file = self.path / "metrics.jsonl"
        self.snapshots = self.path / "snapshots"
        self.export = self.path / "export"
        self.samples = self.path / "samples"
        self.evaluations = self.path / "eval"
        self.done_file = self.path / "DONE"

    def exists(self) -> bool:
        """Whether a run was started here."""
        return self.config_file.exists()

    def is_done(self) -> bool:
        """Whether training ran to its end."""
        return self.done_file.exists()

    def config(self) -> Config:
        """The resolved configuration the run was started with; UserError when this is not a run folder."""
        if not self.exists():
            raise UserError(f"{self.path} is not a run folder (no config.toml in it); `broadreach runs` lists the runs")
        return load_config([self.config_file])

    @contextmanager
    def locked(self) -> Iterator[RunFolder]:
        """Hold the folder; UserError when another process has it. The kernel frees the lock of a killed process."""
        with explained_disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            file = open(self.path / "lock", "a+", encoding="utf-8")  # noqa: SIM115
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "unknown"
                raise UserError(
                    f"run folder {self.path} is in use by process {holder}: wait for it, stop it, "
                    "or choose another with --set run.dir=..."
                ) from None
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield self

    def claim(self, config: Config) -> bool:
        """Write the settings of a new run, or compare them with those of the old one; True when it is a resume."""
        if not self.exists():
            write_atomically(self.config_file, to_toml(config))
            return False
        changed = changed_settings(self.config(), config)
        if changed:
            raise UserError(
                f"run folder {self.path} holds a run with other settings: {'; '.join(changed)}. "
                "Resume it with its own settings, or start anew with --set run.dir=..."
            )
        write_atomically(self.config_file, to_toml(config))
        return True

    def write_environment(self, facts: Mapping[str, Any]) -> None:
        """Versions, hardware, commit and command of this start."""
        write_atomically(self.environment_file, json.dumps(facts, indent=2) + "\n")

    def finished_updates(self) -> int:
        """Updates of a run that is done; 0 while it is not."""
        return int(json.loads(self.done_file.read_text())["updates"]) if self.is_done() else 0

    def reopen(self) -> None:
        """Take back DONE and a half-written or older export, before a run goes on."""
        self.done_file.unlink(missing_ok=True)
        shutil.rmtree(self.export, ignore_errors=True)

    def mark_done(self, facts: Mapping[str, Any]) -> None:
        """Training ran to its end."""
        write_atomically(self.done_file, json.dumps(facts) + "\n")


def changed_settings(old: Config, new: Config) -> list[str]:
    """`key: old -> new` for every setting that would change what the run computes."""
    before, after = flatten(old), flatten(new)
    grows = old.es.sigma_schedule == old.es.alpha_schedule == old.grpo.schedule == "constant"
    free = (*FREE_TO_CHANGE, "train.updates", "train.epochs") if grows else FREE_TO_CHANGE
    return [
        f"{key}: {before.get(key)!r} -> {value!r}"
        for key, value in after.items()
        if before.get(key) != value and not key.startswith(free)
    ]


def find_runs(root: Path) -> list[RunFolder]:
    """Every run folder below `root`, oldest first."""
    if not root.is_dir():
        return []
    found = [RunFolder(file.parent) for file in root.rglob("config.toml") if "snapshots" not in file.parts]
    return sorted(found, key=lambda run: run.config_file.stat().st_mtime)
