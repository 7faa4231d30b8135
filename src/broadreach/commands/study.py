"""`broadreach study`: the same task by ES, GRPO and their compositions, evaluated alike, compared in one report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


def study(
    settings: Annotated[list[str], typer.Argument(help="Recipe names or TOML files, merged left to right.")],
    out: Annotated[str, typer.Option("--out", help="Folder of the runs and of the report.")],
    methods: Annotated[str, typer.Option("--methods", help="Separated by commas.")] = "es,grpo,es->grpo,grpo->es",
    seeds: Annotated[str, typer.Option("--seeds", help="Separated by commas.")] = "0",
    match: Annotated[str, typer.Option("--match", help="What every method gets: updates or responses.")] = "updates",
    suite: Annotated[str | None, typer.Option("--suite", help="Tasks to evaluate on: nano, easy, hard.")] = None,
    baselines: Annotated[bool, typer.Option("--baselines", help="Also base temperatures and weight noise.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs at a time; the cores are shared out.")] = 2,
    memory_gb: Annotated[
        float | None,
        typer.Option("--memory-gb", help="Memory of all runs together (default: 80 % of what is available)."),
    ] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="A setting of every run.")] = None,
) -> None:
    """Train every method with every seed, evaluate all alike, and write one report; finished parts are skipped."""
    from rich.console import Console

    from broadreach.commands.cells_view import CellsView
    from broadreach.commands.lists import whole_numbers
    from broadreach.experiments import memory
    from broadreach.experiments.cells import run_cells
    from broadreach.experiments.study import StudyPlan, sentence, study_cells

    console = Console(highlight=False, soft_wrap=True)
    names = tuple(part.strip() for part in methods.split(",") if part.strip())
    plan = StudyPlan(
        settings=tuple(settings),
        overrides=tuple(overrides or ()),
        methods=names,
        seeds=whole_numbers(seeds, "--seeds", 0),
        match=match,  # type: ignore[arg-type]
        suite=suite,
        baselines=baselines,
        folder=Path(out),
    )
    limit, workers = memory.budget(memory_gb), max(1, jobs)
    cells = memory.sized(study_cells(plan), plan.folder)
    console.print(f"{sentence(plan)}; {memory.sentence(cells, workers, limit)}")
    with CellsView(console, len(cells)) as view:
        failures = run_cells(cells, workers, plan.folder / "logs", view, memory=limit)
    tell_failures(console, failures, plan.folder)
    from broadreach.commands.compare import compare

    compare([str(run) for run in plan.runs()], out=str(plan.folder / "report"))


def tell_failures(console: Console, failures: Mapping[str, str], folder: Path) -> None:
    """List what failed and stop with exit code 1; nothing when all went well."""
    from broadreach.commands.progress import plain

    for name, failure in failures.items():
        console.print(f"[red]{plain(name)}[/] {plain(failure)}   (log: {plain(str(folder))}/logs/{plain(name)}.txt)")
    if failures:
        console.print("The same command goes on where they stopped.")
        raise typer.Exit(1)
