"""`broadreach paper`: every table and figure of the paper as a command, at three scales."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from broadreach.commands.analyze.output import WIDTH
from broadreach.types import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from broadreach.experiments.cells import Cell
    from broadreach.experiments.paper.plan import PaperPlan
    from broadreach.experiments.paper.scale import Scale
    from broadreach.experiments.paper.stamps import Stamps

app = typer.Typer(
    help="Every table and figure of the paper, measured and laid beside the published.", no_args_is_help=True
)
ScaleOption = Annotated[str, typer.Option("--scale", help="laptop, workstation or paper.")]
OutOption = Annotated[str | None, typer.Option("--out", help="Default: runs/paper/SCALE.")]


@app.command("list")
def list_items(scale: ScaleOption = "laptop", out: OutOption = None) -> None:
    """All items, what each needs, and whether it has been measured."""
    from rich.console import Console
    from rich.table import Table

    from broadreach.experiments.paper.catalogue import ITEMS
    from broadreach.experiments.paper.scale import get_scale

    chosen = get_scale(scale)
    folder = _folder(chosen, out)
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)
    console.print(f"{chosen.name}: {chosen.words}\n", soft_wrap=True)
    table = Table("item", "title", "needs", "", box=None)
    for item in ITEMS.values():
        measured = "measured" if (folder / "items" / f"{item.id}.csv").exists() else ""
        table.add_row(item.id, item.title, ", ".join(item.needs), measured)
    console.print(table)
    typer.echo(f"`broadreach paper run all --scale {chosen.name}` measures them all; parts in common run once")


@app.command("run")
def run(
    items: Annotated[list[str], typer.Argument(help="Items by name (`broadreach paper list`), or all.")],
    scale: ScaleOption = "laptop",
    out: OutOption = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Runs at a time; the cores are shared out.")] = 2,
    memory_gb: Annotated[
        float | None,
        typer.Option("--memory-gb", help="Memory of all runs together (default: 80 % of what is available)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run, and what it costs.")] = False,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="A setting of every training run.")] = None,
) -> None:
    """Train, evaluate and analyse what the items need, and write OUT/items/*.csv; finished parts are skipped."""
    from rich.console import Console

    from broadreach.commands.progress import plain
    from broadreach.experiments import memory
    from broadreach.experiments.paper.catalogue import find
    from broadreach.experiments.paper.collect import collect_into
    from broadreach.experiments.paper.parts import cells_for
    from broadreach.experiments.paper.plan import PaperPlan, held
    from broadreach.experiments.paper.scale import get_scale
    from broadreach.experiments.paper.stamps import Stamps

    definitions = find(items)
    chosen = get_scale(scale)
    plan = PaperPlan(chosen, _folder(chosen, out), tuple(overrides or ()))
    parts = list(dict.fromkeys(part for item in definitions for part in item.needs))
    console = Console(highlight=False, soft_wrap=True)
    if dry_run:
        show_plan(console, parts, plan)
        return
    refuse_without_hardware(plan, parts)
    cells, limit = cells_for(parts, plan), memory.budget(memory_gb)
    stamps = Stamps(plan.folder / "done")
    waiting = memory.sized(stamps.unfinished(cells), plan.folder)
    with held(plan):
        done = len(cells) - len(waiting)
        console.print(f"scale {chosen.name}: {chosen.words}; {done} of {len(cells)} parts are done")
        failures = _run_cells(console, waiting, jobs, plan, stamps, limit)
        collected = collect_into(definitions, plan, stamps.seconds())
    for line in collected.lines:
        console.print(line)
    for name, reason in collected.failures.items():
        console.print(f"[red]{name}[/]: {plain(reason)}")
    from broadreach.commands.study import tell_failures

    tell_failures(console, failures, plan.folder)
    if collected.failures:
        raise typer.Exit(1)
    console.print(f"page: broadreach paper report --scale {chosen.name}" + (f" --out {out}" if out else ""))


@app.command("report")
def report(
    scale: ScaleOption = "laptop",
    out: OutOption = None,
    source: Annotated[str | None, typer.Option("--from", help="Folder of item CSV files (default: OUT/items).")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Lay ours beside the published numbers and mark every statement: OUT/report/index.html, which opens offline."""
    from broadreach.experiments.paper.catalogue import ITEMS
    from broadreach.experiments.paper.scale import get_scale
    from broadreach.report.paper_files import read_about, read_items
    from broadreach.report.paper_page import write_paper_page

    chosen = get_scale(scale)
    folder = _folder(chosen, out)
    items_folder = Path(source) if source else folder / "items"
    if source and not items_folder.is_dir():
        raise UserError(f"--from {source}: no such folder; it holds the item CSV files of `broadreach paper run`")
    items = read_items(items_folder, [item.blank() for item in ITEMS.values()])
    about = read_about(items_folder) or {"scale": chosen.name, "words": chosen.words}
    page = write_paper_page(items, about, folder / "report")
    typer.echo(f"report: {page}")
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def show_plan(console: Console, parts: list[str], plan: PaperPlan) -> None:
    """Every part with its runs and what it would cost."""
    from broadreach.commands.analyze.output import print_table
    from broadreach.experiments.paper.cost import CPU_RATE, GPU_RATE, assumptions, costs

    found = costs(parts, plan)
    rows = [
        [one.part, f"{one.runs:,}", f"{one.responses:,.0f}", _hours(one.hours(GPU_RATE)), _hours(one.hours(CPU_RATE))]
        for one in found
    ]
    total = [sum(one.hours(rate) for one in found) for rate in (GPU_RATE, CPU_RATE)]
    rows.append(["all", "", f"{sum(one.responses for one in found):,.0f}", *map(_hours, total)])
    columns = ("part", "runs", "responses", "GPU-hours", "hours on two cores")
    print_table(f"scale {plan.scale.name}: {plan.scale.words}", columns, rows)
    console.print(f"an order of magnitude: {assumptions(plan)}")


def refuse_without_hardware(plan: PaperPlan, parts: list[str]) -> None:
    """UserError with the estimate when the scale needs an accelerator that is not here."""
    needed = plan.scale.gpu_memory
    if not needed:
        return
    import torch

    here = torch.cuda.get_device_properties(0).total_memory / 2**30 if torch.cuda.is_available() else 0.0
    if here >= needed:
        return
    from broadreach.experiments.paper.cost import GPU_RATE, costs

    hours = sum(one.hours(GPU_RATE) for one in costs(parts, plan))
    found = f"the GPU here has {here:.0f} GiB" if here else "there is no GPU here"
    raise UserError(
        f"--scale {plan.scale.name} needs a GPU with {needed} GiB, and {found}: these items would take about "
        f"{_hours(hours)} GPU-hours (--dry-run lists them); --scale laptop runs on two CPU cores"
    )


def _run_cells(
    console: Console, waiting: list[Cell], jobs: int, plan: PaperPlan, stamps: Stamps, limit: float
) -> dict[str, str]:
    from broadreach.commands.cells_view import CellsView
    from broadreach.experiments.cells import run_cells
    from broadreach.experiments.paper.stamps import Stamping

    if not waiting:
        return {}
    with CellsView(console, len(waiting)) as view:
        return run_cells(waiting, jobs, plan.folder / "logs", Stamping(stamps, view), memory=limit)


def _folder(scale: Scale, out: str | None) -> Path:
    return Path(out) if out else Path("runs/paper") / scale.name


def _hours(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
