"""Pass@K and Maj@K tables: ours from the comparison's CSV files, the paper's from its own."""

from __future__ import annotations

from collections.abc import Callable

from broadreach.evaluation.published import published_rows
from broadreach.experiments.paper.files import METHODS, claims_of, csv_rows, ends, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.report.paper_item import Entry
from broadreach.tasks.suites import get_suite

WORDS = {"pass": "Pass", "maj": "Maj"}
AVERAGES = {
    "average": "Average, all tasks",
    "average_math": "Average, mathematics",
    "average_held_out": "Average, held out",
}
"""The published names of averages, and ours."""


def score_entries(
    plan: PaperPlan, studies: tuple[Study, ...], metric: str, wanted: Callable[[Study, str], bool]
) -> tuple[Entry, ...]:
    """Percent with intervals: a panel for each model and task that is `wanted`, a row a method, a column a K."""
    found = []
    for study in studies:
        model = model_of(plan, study)
        for row in csv_rows(plan.report(study) / "tables" / f"{metric}-at-k.csv"):
            if wanted(study, row["task"]):
                panel = f"{model}, {row['task']}"
                found.append(Entry("ours", panel, row["model"], row["measure"], *percent(ends(row))))
    return tuple(found)


def published_scores(setting: str, metric: str, wanted: Callable[[str, str], bool]) -> tuple[Entry, ...]:
    """The paper's table in the same shape; `wanted` gets the task and its role (target or held_out)."""
    found = []
    for row in published_rows(f"{metric}k.csv"):
        if row["setting"] == setting and wanted(row["task"], row["role"]):
            panel = f"{row['model']}, {AVERAGES.get(row['task'], row['task'])}"
            column = f"{WORDS[metric]}@{row['k']}"
            found.append(Entry("published", panel, METHODS[row["method"]], column, float(row["value"])))
    return tuple(found)


def score_item(
    id: str,
    title: str,
    shows: str,
    setting: str,
    metric: str,
    claims: str = "",
    ours: Callable[[Study, str], bool] = lambda study, task: True,
    theirs: Callable[[str, str], bool] = lambda task, role: True,
) -> Definition:
    """A table of one metric in one setting, with the statements whose numbers begin with `claims`."""

    def build(plan: PaperPlan) -> Found:
        studies = plan.scale.of(setting)
        statements = claims_of(plan, studies, claims) if claims else ()
        return Found(score_entries(plan, studies, metric, ours), statements)

    return Definition(id, title, shows, "table", (setting,), build, lambda: published_scores(setting, metric, theirs))


def target(study: Study, task: str) -> bool:
    """The tasks that measure what was trained, and their average."""
    return task in [one.task for one in get_suite(study.suite).target] or task == AVERAGES["average_math"]


def held_out(study: Study, task: str) -> bool:
    """The other tasks, and their average."""
    return not target(study, task) and task != AVERAGES["average"]


def is_target(task: str, role: str) -> bool:
    """As `target`, for published rows."""
    return task == "average_math" or (role == "target" and not task.startswith("average"))


def is_held_out(task: str, role: str) -> bool:
    """As `held_out`, for published rows."""
    return task == "average_held_out" or (role == "held_out" and not task.startswith("average"))
