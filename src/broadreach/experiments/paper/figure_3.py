"""Figure 3: Pareto fronts of Pass@1 and Pass@K."""

from __future__ import annotations

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.curves import figure_files
from broadreach.experiments.paper.files import METHODS, claims_of, csv_rows, model_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    for study in plan.scale.studies:
        for path in figure_files(plan, study, "pareto-*.csv"):
            panel = f"{model_of(plan, study)}, {path.stem.removeprefix('pareto-')}"
            for row in csv_rows(path):
                top = next(name for name in row if name.startswith("pass_at_") and name != "pass_at_1")
                column = f"Pass@{top.removeprefix('pass_at_')}"
                name = f"{row['model']} ({float(row['probability_non_dominated']):.0%})"
                entries.append(
                    Entry("ours", panel, name, column, 100 * float(row[top]), x=100 * float(row["pass_at_1"]))
                )
    note = "In brackets: in how many of the joint bootstrap draws nothing dominates the point."
    return Found(tuple(entries), claims_of(plan, plan.scale.studies, "3"), (note,))


def _published() -> tuple[Entry, ...]:
    found = []
    rows = published_rows("passk.csv")
    scores = {(row["model"], row["method"], row["task"], row["k"]): float(row["value"]) for row in rows}
    for (model, method, task, k), value in scores.items():
        if k == "32" and task in ("average", "average_math", "average_held_out"):
            words = {"average": "all tasks", "average_math": "mathematics", "average_held_out": "held out"}[task]
            x = scores[model, method, task, "1"]
            found.append(Entry("published", f"{model}, {words}", METHODS[method], "Pass@32", value, x=x))
    return tuple(found)


ITEM = Definition(
    "figure-3",
    "Pareto fronts of Pass@1 and Pass@K",
    "The compositions add points that neither method alone dominates. Published points are those of Tables 2, 3 and 5.",
    "points",
    ("easy", "hard"),
    _build,
    _published,
    "Pass@1",
)
