"""Tables 11 and 12, and the published ones as the lines of Figure 4."""

from __future__ import annotations

from collections.abc import Iterator

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import claims_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.weights import threshold_entries
from broadreach.report.paper_item import Entry


def threshold_item(id: str, setting: str) -> Definition:
    """Table 11 (Easy) or 12 (Hard)."""

    def build(plan: PaperPlan) -> Found:
        studies = plan.scale.of(setting)
        return Found(threshold_entries(plan, studies), claims_of(plan, studies, "4c"))

    return Definition(
        id,
        f"Pass@1 of thresholded ES updates, {setting.capitalize()} setting",
        "Changes of at most tau are reset to the base; Pass@1 and its difference to the full update.",
        "table",
        (setting, f"{setting} threshold"),
        build,
        lambda: published_thresholds(setting),
    )


def published_thresholds(setting: str) -> tuple[Entry, ...]:
    """Rows: thresholds; columns: share reset, Pass@1, difference to the full update in points."""
    found = []
    for row in _rows(setting):
        name = {"0": "full update", "inf": "base"}.get(row["tau"]) or f"tau {float(row['tau']):.3g}"
        panel = row["model"]
        found += [
            Entry("published", panel, name, "reset", float(row["sparsity_percent"])),
            Entry("published", panel, name, "Pass@1", float(row["pass1_percent"])),
        ]
        if row["delta_points"]:
            found.append(Entry("published", panel, name, "minus full", float(row["delta_points"]), unit="points"))
    return tuple(found)


def published_curves() -> tuple[Entry, ...]:
    """Pass@1 against the share reset, a line a model."""
    return tuple(
        Entry(
            "published",
            "published models",
            row["model"],
            "Pass@1",
            float(row["pass1_percent"]),
            x=float(row["sparsity_percent"]),
        )
        for setting in ("easy", "hard")
        for row in _rows(setting)
    )


def _rows(setting: str) -> Iterator[dict[str, str]]:
    for row in published_rows("threshold.csv"):
        if ("DeepSeek" in row["model"]) == (setting == "hard"):
            yield row
