"""What `broadreach analyze threshold`, `drift` and `null` left in a run folder, as far as a claim needs it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broadreach.evaluation.metrics import pass_curve
from broadreach.evaluation.statistics import Floats
from broadreach.evaluation.summary import Json, refuse_unlike
from broadreach.evaluation.table import SampleTable, load
from broadreach.report.comparison_runs import RunRecord
from broadreach.report.files import object_in, text_of
from broadreach.types import UserError

SAME_DRIFT = 1e-3
"""drift.json is of a run's last weights when its relative L2 differs from the last of metrics.jsonl by less."""


@dataclass(frozen=True, slots=True)
class Thresholded:
    """One run with its small changes reset, next to the full update."""

    share: float
    """Of the moved coordinates, how many were reset."""
    full: SampleTable
    reset: SampleTable
    random: SampleTable | None
    """As many random coordinates reset, where that control was run."""

    def passes(self) -> tuple[Floats, Floats, Floats | None]:
        """Pass@K [problems, K] of full, reset and random."""
        random = None if self.random is None else pass_curve(self.random.correct)
        return pass_curve(self.full.correct), pass_curve(self.reset.correct), random


@dataclass(frozen=True, slots=True)
class Largest:
    """The kinds of tensor that hold the largest changes of one run."""

    kinds: Counter[str]
    """Kind -> how many of the largest changes."""
    parameters: Mapping[str, int]
    """Kind -> how many weights there are."""
    noise: Mapping[str, float]
    """Kind -> share of the 100 largest that noise alone puts there; empty without null.json."""


def read_threshold(run: RunRecord, share: float, within: float) -> Thresholded | str:
    """The control that resets the share of coordinates nearest to `share`, or in words why there is none to use.

    UserError when threshold.json is not what the command writes.
    """
    path = run.path / "analysis" / "threshold.json"
    found = object_in(text_of(path))
    if not found:
        return f"run `broadreach analyze threshold {run.path}`"
    try:
        rows = [row for row in found["rows"] if row["control"] == "threshold" and row["metric"] == "pass"]
        near = min(rows, key=lambda row: abs(float(row["sparsity"]) - share), default=None)
        nearest = math.nan if near is None else float(near["sparsity"])
        tau = math.nan if near is None else float(near["tau"])
    except (KeyError, TypeError, ValueError):
        raise _malformed(path, "threshold", run) from None
    if not abs(nearest - share) <= within:
        return f"{path} has no threshold that resets {share - within:.0%} to {share + within:.0%} of the coordinates"
    root = path.parent / "threshold"
    full = _table(root / "full")
    reset, random = (_table(root / f"{name}-{tau:g}", full) for name in ("threshold", "random-count"))
    if full is None or reset is None:
        return f"the responses under {root} are gone or unlike: run `broadreach analyze threshold {run.path}` again"
    if full.header.model_digest != next(iter(run.after.values())).table.header.model_digest:
        return f"{path} is not of the run's last weights: run `broadreach analyze threshold {run.path}` again"
    return Thresholded(nearest, full, reset, random)


def read_largest(run: RunRecord) -> Largest | str:
    """The kinds of the largest changes, or in words why there are none to use.

    UserError when drift.json or null.json is not what the command writes.
    """
    path = run.path / "analysis" / "drift.json"
    found = object_in(text_of(path))
    if not found:
        return f"run `broadreach analyze drift {run.path}`"
    try:
        moved = float(found["model"]["relative_l2"])
        kinds = Counter(str(place["kind"]) for place in found["top"])
        parameters = {str(kind): int(part["parameters"]) for kind, part in found["kinds"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _malformed(path, "drift", run) from None
    drift = last_drift(run.metrics)
    if drift is None or not math.isclose(moved, drift, rel_tol=SAME_DRIFT):
        return f"{path} is not of the run's last weights against its base: run `broadreach analyze drift {run.path}`"
    return Largest(kinds, parameters, _noise(run)) if kinds else f"{path}: nothing moved"


def last_drift(metrics: list[Json]) -> float | None:
    """The last measured distance from the base."""
    return next((float(row["drift"]) for row in reversed(metrics) if row.get("drift") is not None), None)


def _noise(run: RunRecord) -> dict[str, float]:
    """Of the null in the run's own arithmetic; with several (engines), of the first."""
    path = run.path / "analysis" / "null.json"
    found = object_in(text_of(path))
    precision = run.setting("es", "precision", "exact")
    try:
        rows = [
            row
            for row in found.get("rows", [])
            if row["statistic"] == "share_of_top_100" and row["level"] == "kind" and row["precision"] == precision
        ]
        return {str(row["part"]): float(row["value"]) for row in rows if row["null"] == rows[0]["null"]}
    except (KeyError, TypeError, ValueError):
        raise _malformed(path, "null", run) from None


def _table(folder: Path, like: SampleTable | None = None) -> SampleTable | None:
    """A finished store, on the same problems as `like`; None for anything else."""
    path = folder / "samples.jsonl"
    if not path.exists():
        return None
    table = load(path)
    try:
        refuse_unlike(like or table, table)
    except UserError:
        return None
    return table


def _malformed(path: Path, name: str, run: RunRecord) -> UserError:
    return UserError(f"{path} is not what `broadreach analyze {name}` writes: make it again with that and {run.path}")
