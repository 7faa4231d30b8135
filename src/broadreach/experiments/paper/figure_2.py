"""Figure 2: token entropy and Pass@K over updates."""

from __future__ import annotations

from broadreach.experiments.paper.curves import figure_files, update_entries
from broadreach.experiments.paper.files import claims_of, model_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    for study in plan.scale.easy:
        for path in figure_files(plan, study, "entropy-*.csv"):
            panel = f"{model_of(plan, study)}, {path.stem.removeprefix('entropy-')}"
            entries += update_entries(path, panel, "token entropy", 1, "nats")
        for path in figure_files(plan, study, "pass*-*.csv"):
            metric, task = path.stem.split("-", 1)
            column = f"Pass@{metric.removeprefix('pass')}"
            entries += update_entries(path, f"{model_of(plan, study)}, {task}", column, 100, "percent")
    return Found(tuple(entries), claims_of(plan, plan.scale.easy, "2"))


ITEM = Definition(
    "figure-2",
    "Entropy and Pass@K over training",
    "Token entropy on fixed held-out prompts falls under GRPO and stays under ES. The paper prints no numbers.",
    "lines",
    ("easy",),
    _build,
    x_label="update",
)
