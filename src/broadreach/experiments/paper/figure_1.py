"""Figure 1: the overview. What ES and GRPO gain over the base at every K on what they were trained on."""

from __future__ import annotations

from broadreach.experiments.paper.curves import figure_files, profile_entries
from broadreach.experiments.paper.files import model_of
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.comparison_figures import slug
from broadreach.report.paper_item import Entry
from broadreach.tasks.suites import get_suite


def _build(plan: PaperPlan) -> Found:
    entries: list[Entry] = []
    for study in plan.scale.easy:
        for task in get_suite(study.suite).target:
            for path in figure_files(plan, study, f"gain-{slug(task.task)}.csv"):
                panel = f"{model_of(plan, study)}, {task.task}"
                entries += profile_entries(path, panel, "points over the base", 100, "points")
    return Found(tuple(entries))


ITEM = Definition(
    "figure-1",
    "Gain over the base at every K",
    "GRPO gains most at K = 1, ES keeps its gain at large K; the figure's numbers are not in our transcription.",
    "lines",
    ("easy",),
    _build,
    x_label="K",
)
