"""Figure 6: Pass@K profiles over all K."""

from __future__ import annotations

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.curves import figure_files, profile_entries
from broadreach.experiments.paper.files import METHODS, model_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    for study in plan.scale.studies:
        for path in figure_files(plan, study, "profile-*.csv"):
            panel = f"{model_of(plan, study)}, {path.stem.removeprefix('profile-')}"
            entries += profile_entries(path, panel, "Pass@K", 100, "percent")
    return Found(tuple(entries))


def _published() -> tuple[Entry, ...]:
    return tuple(
        Entry(
            "published",
            f"{row['model']}, {row['task']}",
            METHODS[row["method"]],
            "Pass@K",
            float(row["value"]),
            x=float(row["k"]),
        )
        for row in published_rows("passk.csv")
        if row["role"] == "target"
    )


ITEM = Definition(
    "figure-6",
    "Pass@K profiles",
    "Pass@K for every K from 1 to 32: GRPO starts above the base and falls behind it at large K. Published points are "
    "K = 1, 16, 32 of Tables 2 and 3.",
    "lines",
    ("easy", "hard"),
    _build,
    _published,
    "K",
)
