"""A sweep: one recipe at every point of a grid of settings, some seeds each, evaluated alike, one row a run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.types import UserError

MEASURES = ("training_reward", "pass_at_1", "pass_at_1_low", "pass_at_1_high", "k", "pass_at_k", "drift", "seconds")


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A grid over settings."""

    settings: tuple[str, ...]
    overrides: tuple[str, ...]
    grid: tuple[tuple[str, tuple[str, ...]], ...]
    """(key, values) in the order of the columns."""
    seeds: tuple[int, ...]
    folder: Path

    def points(self) -> list[tuple[str, ...]]:
        """Every combination of values, the last key fastest."""
        return list(product(*(values for _, values in self.grid)))

    def run(self, point: Sequence[str], seed: int) -> Path:
        """The run folder of one point and seed."""
        parts = [f"{key.rsplit('.', 1)[-1]}={value}" for (key, _), value in zip(self.grid, point, strict=True)]
        return self.folder / ",".join([*parts, f"seed={seed}"])


def parse_grid(items: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`es.sigma=0.003,0.005` -> (key, values); UserError for anything else."""
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        key, separator, text = item.partition("=")
        values = tuple(part.strip() for part in text.split(",") if part.strip())
        if not separator or not values:
            raise UserError(f"--grid {item}: write it as section.key=value,value, for example es.sigma=0.003,0.005")
        if key in found or len(set(values)) < len(values):
            raise UserError(f"--grid {item}: the key, or one of its values, is named twice")
        found[key.strip()] = values
    if not found:
        raise UserError("a sweep needs at least one --grid section.key=value,value")
    return tuple(found.items())


def sweep_cells(plan: SweepPlan) -> list[Cell]:
    """One cell a run; UserError when any point is not a valid configuration, before anything is trained."""
    cells = []
    for point in plan.points():
        for seed in plan.seeds:
            chosen = [f"{key}={value}" for (key, _), value in zip(plan.grid, point, strict=True)]
            overrides = [*plan.overrides, *chosen, f"seed={seed}"]
            config = resolve(plan.settings, overrides)
            run = plan.run(point, seed)
            settings = [part for item in overrides for part in ("--set", item)]
            train = ("train", *plan.settings, *settings, "--run", str(run), "--json")
            jobs = (Job("training", train), Job("evaluating", ("eval", str(run), "--json")))
            cells.append(Cell(run.name, jobs, config=config))
    return cells


def rows(plan: SweepPlan, failed: Collection[str] = ()) -> list[dict[str, Any]]:
    """What every finished and evaluated run of the sweep came to, in the order of the grid; not those that `failed`.

    A folder that holds a run of other settings fails, and what lies in it must not be told for this sweep.
    """
    found = []
    for point in plan.points():
        for seed in plan.seeds:
            run = RunFolder(plan.run(point, seed))
            measured = None if run.path.name in failed else _measured(run)
            if measured is not None:
                keys = dict(zip((key for key, _ in plan.grid), point, strict=True))
                found.append({**keys, "seed": seed, **measured})
    return found


def write_rows(plan: SweepPlan, failed: Collection[str] = ()) -> Path:
    """Write sweep.csv beside the runs and return its path."""
    path = plan.folder / "sweep.csv"
    buffer = io.StringIO()
    columns = [*(key for key, _ in plan.grid), "seed", *MEASURES]
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(plan, failed))
    write_atomically(path, buffer.getvalue())
    return path


def _measured(run: RunFolder) -> dict[str, Any] | None:
    """The measures of one run; None while it is not finished and evaluated."""
    metrics_file = run.evaluations / "final" / "metrics.json"
    if not run.is_done() or not metrics_file.exists():
        return None
    metrics = json.loads(metrics_file.read_text())
    lines = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    last = lines[-max(1, len(lines) // 4) :]
    first, top = metrics["pass_at_1"], metrics["pass_at_k"][-1]
    return {
        "training_reward": round(sum(line["reward_mean"] for line in last) / len(last), 4),
        "pass_at_1": round(first["value"], 4),
        "pass_at_1_low": round(first["low"], 4),
        "pass_at_1_high": round(first["high"], 4),
        "k": top["k"],
        "pass_at_k": round(top["value"], 4),
        "drift": float(f"{lines[-1]['drift']:.4g}"),
        "seconds": round(sum(line["seconds"]["total"] for line in lines), 1),
    }
