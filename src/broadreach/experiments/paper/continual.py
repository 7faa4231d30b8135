"""One task after the other (section 8, claim 6 taken further): what the second costs the first, by method and decay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job
from broadreach.experiments.paper.files import csv_rows, ends, model_of, percent
from broadreach.experiments.paper.plan import Definition, Found, PaperPlan
from broadreach.report.paper_item import Entry

DECAY = 0.02
"""Share of the way back to a stage's start that anchored decay takes at each update."""
MEASURES = {
    "average_accuracy": "average accuracy",
    "average_forgetting": "average forgetting",
    "backward_transfer": "backward transfer",
    "forward_transfer": "forward transfer",
}


@dataclass(frozen=True, slots=True)
class Sequence:
    """One way of training on two tasks."""

    name: str
    label: str
    method: str
    overrides: tuple[str, ...] = ()


SEQUENCES = (
    Sequence("es", "ES", "es"),
    Sequence("es-decay", f"ES, anchored decay {DECAY:g}", "es", (f"es.anchor_decay={DECAY:g}",)),
    Sequence("grpo", "GRPO", "grpo"),
)


def sequence_run(plan: PaperPlan, sequence: Sequence) -> Path:
    """The run folder of one sequence."""
    return plan.folder / "continual" / sequence.name


def continual_cells(plan: PaperPlan) -> list[Cell]:
    """One cell a sequence: both stages, then every task after every stage."""
    study = plan.scale.easy[0]
    cells = []
    for sequence in SEQUENCES:
        run = str(sequence_run(plan, sequence))
        tasks = plan.scale.continual_tasks
        stages = ",".join(f'{{method="{sequence.method}",set={{"task.name"="{task}"}}}}' for task in tasks)
        chosen = (*plan.plain(study), *sequence.overrides)
        chosen = (*chosen, f"train.stages=[{stages}]")
        settings = [part for item in chosen for part in ("--set", item)]
        jobs = (
            Job("training", ("train", study.recipe, *settings, "--run", run, "--json")),
            Job("every task after every stage", ("analyze", "forgetting", run)),
        )
        cells.append(Cell(f"continual:{sequence.name}", jobs, config=resolve((study.recipe,), chosen)))
    return cells


def _build(plan: PaperPlan) -> Found:
    model = model_of(plan, plan.scale.easy[0])
    entries: list[Entry] = []
    for sequence in SEQUENCES:
        for row in csv_rows(sequence_run(plan, sequence) / "analysis" / "forgetting.csv"):
            if row["measure"] == "accuracy":
                stage = int(row["stage"])
                name = f"after {plan.scale.continual_tasks[stage - 1]}" if stage else "base"
                panel, column = f"{model}, Pass@{row['k']}, {sequence.label}", row["task"]
                entries.append(Entry("ours", panel, name, column, *percent(ends(row))))
            else:
                panel, column = f"{model}, Pass@{row['k']}", MEASURES[row["measure"]]
                unit = "percent" if row["measure"] == "average_accuracy" else "points"
                entries.append(Entry("ours", panel, sequence.label, column, *percent(ends(row)), unit=unit))
    return Found(tuple(entries), (), ("One seed; half of the updates on each task; intervals are over problems.",))


ITEM = Definition(
    "continual",
    "One task after the other",
    "The paper says that ES forgets less, and trains on one task only. Ours: two tasks in turn, and every accuracy.",
    "table",
    ("continual",),
    _build,
)
