"""The lines that a comparison drew, read back from its CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from broadreach.experiments.paper.files import csv_rows
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.report.paper_item import Entry


def figure_files(plan: PaperPlan, study: Study, pattern: str) -> list[Path]:
    """The CSV files of a comparison's figures; FileNotFoundError where the comparison has not been made."""
    folder = plan.report(study) / "figures"
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(2, "missing", str(folder / pattern))
    return found


def profile_entries(path: Path, panel: str, column: str, factor: float, unit: str) -> Iterator[Entry]:
    """A file with K and value, low and high of every model: one line a model."""
    rows = csv_rows(path)
    names = [name.removesuffix(" value") for name in rows[0] if name.endswith(" value")]
    for name in names:
        for row in rows:
            value, low, high = (factor * float(row[f"{name} {end}"]) for end in ("value", "low", "high"))
            yield Entry("ours", panel, name, column, value, low, high, float(row["k"]), unit)


def update_entries(path: Path, panel: str, column: str, factor: float, unit: str) -> Iterator[Entry]:
    """A file of values over updates: the mean over seeds (or the only seed) of every method."""
    rows = csv_rows(path)
    averaged = {row["method"] for row in rows if row["seed_line"] == "mean"}
    for row in rows:
        if row["seed_line"] == "mean" or row["method"] not in averaged:
            yield Entry(
                "ours", panel, row["method"], column, factor * float(row["value"]), x=float(row["update"]), unit=unit
            )
