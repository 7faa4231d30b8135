"""`broadreach sweep`: train and evaluate a recipe at every point of a grid of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sweep(
    settings: Annotated[list[str], typer.Argument(help="Recipe names or TOML files, merged left to right.")],
    grid: Annotated[list[str], typer.Option("--grid", help="Values of one setting: es.sigma=0.003,0.005.")],
    out: Annotated[str, typer.Option("--out", help="Folder of the runs and of sweep.csv.")],
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds, separated by commas.")] = "0",
    jobs: Annotated[int, typer.Option("--jobs", help="Runs at a time; the cores are shared out.")] = 2,
    memory_gb: Annotated[
        float | None,
        typer.Option("--memory-gb", help="Memory of all runs together (default: 80 % of what is available)."),
    ] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="A setting of every run.")] = None,
) -> None:
    """Train and evaluate at every point of a grid; finished runs are skipped, failed ones are listed, others go on."""
    from rich.console import Console
    from rich.table import Table

    from broadreach.commands.cells_view import CellsView
    from broadreach.commands.lists import whole_numbers
    from broadreach.commands.study import tell_failures
    from broadreach.experiments import memory
    from broadreach.experiments.cells import run_cells
    from broadreach.experiments.sweep import SweepPlan, parse_grid, rows, sweep_cells, write_rows
    from broadreach.experiments.sweep_curves import write_curves

    console = Console(highlight=False, soft_wrap=True)
    plan = SweepPlan(
        tuple(settings), tuple(overrides or ()), parse_grid(grid), whole_numbers(seeds, "--seeds", 0), Path(out)
    )
    limit, workers = memory.budget(memory_gb), max(1, jobs)
    cells = memory.sized(sweep_cells(plan), plan.folder)
    console.print(memory.sentence(cells, workers, limit))
    with CellsView(console, len(cells)) as view:
        failures = run_cells(cells, workers, plan.folder / "logs", view, memory=limit)
    found = rows(plan, failures)
    table = Table(*(found[0] if found else ()), box=None)
    for row in sorted(found, key=lambda one: -one["pass_at_1"]):
        table.add_row(*map(str, row.values()))
    console.print(table, width=None if console.is_terminal else 200)
    curves = ", ".join(map(str, write_curves(plan, failures)))
    console.print(f"all rows: {write_rows(plan, failures)}; rewards over updates: {curves}")
    tell_failures(console, failures, plan.folder)
