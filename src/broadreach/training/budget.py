"""What a run has spent, summed from its metrics lines (all stages), left in budget.json for reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from broadreach.runs.budget import Budget, total
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.training.stages import read_stages


def read_lines(run: RunFolder) -> list[dict[str, Any]]:
    """The metrics lines of a run, those of all its stages for a sequence; a torn last line is left out."""
    stages = read_stages(run)
    files = [stage.run(run).metrics_file for stage in stages] or [run.metrics_file]
    return [line for file in files for line in _lines(file)]


def budget_of(run: RunFolder) -> Budget:
    """What a run has spent, finished or not."""
    return total(read_lines(run))


def write_budget(run: RunFolder) -> None:
    """Leave budget.json in the run folder, so that a report needs nothing but files."""
    if run.exists():
        write_atomically(run.path / "budget.json", json.dumps(asdict(budget_of(run)), indent=2) + "\n")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue
