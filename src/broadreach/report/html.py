"""The report of one run: a single page that opens offline, with its figures and tables beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from broadreach.report import summary, tables
from broadreach.report.figures import all_figures
from broadreach.report.files import csv_link
from broadreach.report.problems import problem_rows
from broadreach.report.run_data import RunData, read_run
from broadreach.report.svg import Figure, save_pdf, to_csv, to_svg
from broadreach.report.words import count, counted, points, points_interval, verdict
from broadreach.runs.files import explained_disk_errors, write_atomically


def write_report(run_dir: str | Path, out_dir: str | Path) -> Path:
    """Write out_dir/index.html (self-contained), figures/*.pdf and *.csv, tables/*.csv; return the page's path.

    Reads only the files of the run folder. An unfinished run gets a report too, marked unfinished. UserError when it
    is no run folder, a file of it cannot be read, or the disk is full.
    """
    run, out = read_run(run_dir), Path(out_dir)
    figures = all_figures(run)
    with explained_disk_errors(out):
        for name in ("figures", "tables"):
            (out / name).mkdir(parents=True, exist_ok=True)
        for figure in figures:
            save_pdf(figure, out / "figures" / f"{figure.name}.pdf")
            (out / "figures" / f"{figure.name}.csv").write_text(to_csv(figure), encoding="utf-8")
        for name, text in _table_files(run).items():
            (out / "tables" / name).write_text(text, encoding="utf-8")
        page = out / "index.html"
        write_atomically(page, render(run, figures))
    return page


def render(run: RunData, figures: list[Figure]) -> str:
    """The page as text; figures inline, numbers behind download links that hold their own data."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("broadreach.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(count=count, points=points, points_interval=points_interval, verdict=verdict)
    style, _, _ = loader.get_source(environment, "style.css")
    return environment.get_template("index.html.j2").render(_context(run, figures), style=Markup(style))


def _context(run: RunData, figures: list[Figure]) -> dict[str, Any]:
    own = run.own
    return {
        "run": run,
        "title": summary.title(run),
        "state": _state(run),
        "tiles": summary.tiles(run),
        "paragraphs": summary.paragraphs(run),
        "notes": summary.notes(run),
        "figures": [(figure, Markup(to_svg(figure)), csv_link(to_csv(figure))) for figure in figures],
        "measures": tables.measures(own) if own else [],
        "measures_csv": csv_link(tables.measure_csv(own)) if own else "",
        "held_out": [(pair, tables.measures(pair)) for pair in run.held_out],
        "settings": tables.settings(run),
        "budget": tables.budget(run),
        "problems": problem_rows(own) if own else [],
        "problems_csv": csv_link(tables.problem_csv(own)) if own else "",
        "made_with": tables.made_with(run),
        "started": str(run.environment.get("started") or "")[:10],
        "commands": _commands(run),
    }


def _state(run: RunData) -> str:
    """Empty for a finished run, else how far it came."""
    if run.done:
        return ""
    planned = run.setting("train", "updates")
    so_far = f"{len(run.metrics)} of {planned} updates" if planned else counted(len(run.metrics), "update")
    return f"Unfinished run: {so_far} so far. Every figure shows what there is."


def _commands(run: RunData) -> list[str]:
    """How to make this again, and how to get the weights of any update."""
    commit = run.environment.get("commit")
    return [
        *([f"git checkout {str(commit).removesuffix('-dirty')}"] if commit else []),
        *([f"# the run was started with: {run.environment['command']}"] if run.environment.get("command") else []),
        f"broadreach train {run.path}/config.toml --run runs/again",
        "broadreach eval runs/again",
        "broadreach report runs/again",
        f"broadreach replay {run.path} --step {len(run.metrics)} --out weights",
    ]


def _table_files(run: RunData) -> dict[str, str]:
    files = {
        "settings.csv": tables.to_csv(("setting", "value"), tables.settings(run)),
        "budget.csv": tables.to_csv(("quantity", "value"), tables.budget(run)),
    }
    for pair in [run.own, *run.held_out]:
        if pair is not None:
            files[f"{pair.task.replace('/', '-')}-measures.csv"] = tables.measure_csv(pair)
            files[f"{pair.task.replace('/', '-')}-problems.csv"] = tables.problem_csv(pair)
    return files
