"""The parts that the items share: training runs and analyses, as cells that run once and are skipped afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from broadreach.experiments.cells import Cell, Job
from broadreach.experiments.paper.continual import continual_cells
from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Study
from broadreach.experiments.paper.taus import is_published, published_run, study_taus, threshold_task
from broadreach.experiments.paper.variants import variant_cells
from broadreach.experiments.study import cell_name, study_cells
from broadreach.experiments.sweep import sweep_cells

CONTROLS = "threshold,random-count"
"""Controls of every seed but the first, which gets all of them."""


def cells_for(parts: Iterable[str], plan: PaperPlan) -> list[Cell]:
    """The cells of some parts in order of need, each once, and the report of every study among them at its end."""
    found: dict[str, Cell] = {}
    for part in dict.fromkeys(parts):
        found.update((cell.name, cell) for cell in PARTS[part](plan))
    for study in plan.scale.studies:
        inputs = tuple(name for name in found if name.startswith(f"{study.name}:"))
        if inputs:
            cell = _report(plan, study, inputs)
            found[cell.name] = cell
    return list(found.values())


def run_cell(study: Study, method: str, seed: int) -> str:
    """The name of the cell that trains and evaluates one run."""
    return f"{study.name}:{cell_name(method)}-seed{seed}"


def _trained(plan: PaperPlan, studies: Sequence[Study]) -> list[Cell]:
    cells = []
    for study in studies:
        for cell in study_cells(plan.study(study)):
            after = tuple(f"{study.name}:{name}" for name in cell.after)
            cells.append(replace(cell, name=f"{study.name}:{cell.name}", after=after))
    return cells


def _report(plan: PaperPlan, study: Study, after: tuple[str, ...]) -> Cell:
    runs = tuple(map(str, plan.study(study).runs()))
    job = Job("comparing", ("compare", *runs, "--out", str(plan.report(study))))
    return Cell(f"{study.name}:report", (job,), after)


def _drift(plan: PaperPlan, studies: Sequence[Study]) -> list[Cell]:
    """Distances of the single methods from the base, and what noise alone would have done to ES."""
    cells = []
    for study in studies:
        taus = ",".join(f"{tau:.4g}" for tau in study_taus(plan, study))
        for method in ("es", "grpo"):
            for seed, run in zip(study.seeds, plan.runs(study, method), strict=True):
                jobs = [Job("measuring drift", ("analyze", "drift", str(run), "--taus", taus))]
                if method == "es":
                    jobs.append(Job("noise only", ("analyze", "null", str(run), "--taus", taus)))
                trained = run_cell(study, method, seed)
                cells.append(Cell(f"{trained}-drift", tuple(jobs), (trained,)))
    return cells


def _threshold(plan: PaperPlan, studies: Sequence[Study]) -> list[Cell]:
    cells = []
    for study in studies:
        told = published_run(study.setting).sparsity
        option, values = ("--taus", told.keys()) if is_published(plan, study) else ("--shares", told.values())
        reset = (option, ",".join(f"{value:g}" for value in values))
        task = threshold_task(study)
        chosen = (*reset, *(("--task", task) if task else ()))
        for seed, run in zip(study.seeds, plan.runs(study, "es"), strict=True):
            controls = () if seed == study.seeds[0] else ("--controls", CONTROLS)
            job = Job("thresholding", ("analyze", "threshold", str(run), *chosen, *controls))
            trained = run_cell(study, "es", seed)
            cells.append(Cell(f"{trained}-threshold", (job,), (trained,)))
    return cells


def _population(plan: PaperPlan) -> list[Cell]:
    return [
        replace(cell, name=f"{population.name}:{cell.name}")
        for population in plan.scale.populations
        for cell in sweep_cells(plan.sweep(population))
    ]


def _estimator(plan: PaperPlan) -> list[Cell]:
    scale, out = plan.scale, str(plan.folder / "estimator")
    command = ("analyze", "estimator", scale.estimator_model, "--task", scale.estimator_task)
    job = Job("estimators", (*command, "--sigmas", scale.estimator_sigmas, "--out", out))
    return [Cell("estimator", (job,))]


def _theory(plan: PaperPlan) -> list[Cell]:
    study = plan.scale.easy[0]
    run = plan.runs(study, "es")[0]
    out = str(plan.folder / "theory")
    job = Job(
        "diversity",
        ("analyze", "diversity", str(run), "--steps", plan.scale.theory_steps, *plan.scale.theory_sizes, "--out", out),
    )
    return [Cell("theory", (job,), (run_cell(study, "es", study.seeds[0]),))]


def _probe(plan: PaperPlan) -> list[Cell]:
    command = ("analyze", "probe", plan.scale.easy[0].recipe, "--out", str(plan.folder / "probe"))
    return [Cell("probe", (Job("sigma probe", command),))]


def _on_first_es_run(name: str, label: str, *commands: tuple[str, ...]) -> Callable[[PaperPlan], list[Cell]]:
    """A part that analyses the first ES run of the first Easy study; "{es}" and "{grpo}" stand for run folders."""

    def cells(plan: PaperPlan) -> list[Cell]:
        study = plan.scale.easy[0]
        runs = {method: str(plan.runs(study, method)[0]) for method in ("es", "grpo")}
        jobs = tuple(Job(label, tuple(part.format(**runs) for part in command)) for command in commands)
        return [Cell(name, jobs, tuple(run_cell(study, method, study.seeds[0]) for method in runs))]

    return cells


PARTS: dict[str, Callable[[PaperPlan], list[Cell]]] = {
    "easy": lambda plan: _trained(plan, plan.scale.easy),
    "hard": lambda plan: _trained(plan, plan.scale.hard),
    "easy weights": lambda plan: _drift(plan, plan.scale.easy),
    "hard weights": lambda plan: _drift(plan, plan.scale.hard),
    "easy threshold": lambda plan: _threshold(plan, plan.scale.easy),
    "hard threshold": lambda plan: _threshold(plan, plan.scale.hard),
    "population": _population,
    "settings": variant_cells,
    "continual": continual_cells,
    "paths": _on_first_es_run(
        "paths",
        "straight lines",
        ("analyze", "path", "{es}"),
        ("analyze", "path", "{es}", "--other", "{grpo}", "--points", "0,0.25,0.5,0.75,1"),
    ),
    "precision": _on_first_es_run("precision", "both arithmetics", ("analyze", "precision", "{es}", "--score")),
    "estimator": _estimator,
    "theory": _theory,
    "probe": _probe,
}
"""Part -> its cells."""
