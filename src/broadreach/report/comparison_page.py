"""The comparison of several runs: one self-contained page, with its figures and tables beside it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from broadreach.evaluation.statistics import DRAWS
from broadreach.report import comparison_tables as tables
from broadreach.report.claims import Claim, multiplicity
from broadreach.report.claims_list import all_claims
from broadreach.report.comparison_budget import budget_rows
from broadreach.report.comparison_curves import update_figures
from broadreach.report.comparison_data import Comparison, Progress, read_comparison
from broadreach.report.comparison_extras import baseline_rows, budget_matches, matched_rows
from broadreach.report.comparison_figures import model_figures
from broadreach.report.comparison_matched import budget_heading, budget_lines, matched_budget_csv, matched_budgets
from broadreach.report.comparison_stats import Statistics
from broadreach.report.comparison_style import styles
from broadreach.report.comparison_words import introduction, reproduce, run_rows, setting_rows, title
from broadreach.report.explorer import TEXT_BYTES, build_explorer
from broadreach.report.files import csv_link, csv_text
from broadreach.report.paper_numbers import published
from broadreach.report.svg import Figure, save_pdf, to_csv, to_svg
from broadreach.runs.budget import MEANING
from broadreach.runs.files import explained_disk_errors, write_atomically

MARKS = {
    "confirmed": ("up", "✓"),
    "refuted": ("down", "✗"),
    "undecided": ("flat", "?"),
    "not measured here": ("flat", "–"),
}
"""Verdict -> (class of the page, sign beside the word)."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was made."""

    page: Path
    claims: tuple[Claim, ...]


def write_comparison(
    runs: Sequence[str | Path],
    out_dir: str | Path,
    *,
    ks: Sequence[int] | None = None,
    draws: int = DRAWS,
    text_bytes: int = TEXT_BYTES,
    progress: Progress | None = None,
) -> Written:
    """Write out_dir/index.html (self-contained), figures/*.pdf and *.csv, tables/*.csv.

    Reads only the files of the run folders; unfinished runs are marked. UserError in one line when the runs cannot
    be compared (`read_comparison`), or the disk is full.
    """
    say = progress or (lambda text: None)
    data = read_comparison(runs, ks, progress)
    stats = Statistics(data, draws)
    say("computing intervals")
    claims = all_claims(data, stats)
    say("drawing figures")
    figures = [*model_figures(data, stats), *update_figures(data)]
    out = Path(out_dir)
    with explained_disk_errors(out):
        for name in ("figures", "tables"):
            (out / name).mkdir(parents=True, exist_ok=True)
        for figure in figures:
            save_pdf(figure, out / "figures" / f"{figure.name}.pdf")
            (out / "figures" / f"{figure.name}.csv").write_text(to_csv(figure), encoding="utf-8")
        context = _context(data, stats, claims, figures, text_bytes, say)
        for name, rows in context.pop("files").items():
            (out / "tables" / f"{name}.csv").write_text(csv_text(rows), encoding="utf-8")
        write_atomically(out / "index.html", render(context))
    return Written(out / "index.html", tuple(claims))


def render(context: dict[str, Any]) -> str:
    """The page as text. Its one script is allowed by its digest, and nothing may be fetched."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("broadreach.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["mark"] = MARKS
    style, script = (
        "\n".join(loader.get_source(environment, name)[0] for name in names)
        for names in (("style.css", "compare.css"), ("explorer.js",))
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("compare.html.j2")
    return template.render(context, style=Markup(style), script=Markup(script), script_digest=digest)


def _context(
    data: Comparison,
    stats: Statistics,
    claims: Sequence[Claim],
    figures: Sequence[Figure],
    text_bytes: int,
    say: Progress,
) -> dict[str, Any]:
    paper = published(data)
    scores = tables.score_tables(data, stats, paper)
    change = tables.change_table(data, stats, paper)
    shown = [*scores, *([change] if change else [])]
    baselines, baseline_notes = baseline_rows(data, stats)
    matched, matched_note = matched_rows(data, stats)
    within, within_notes = matched_budgets(data, stats)
    colours = {key: style.colour for key, style in styles(data).items()}
    budget = budget_rows(data)
    methods = [method.label for method in data.methods]
    claim_lines = [[c.number, c.statement, c.verdict, c.evidence] for c in claims]
    files: dict[str, list[list[Any]]] = {
        "claims": [["claim", "statement", "verdict", "evidence"], *claim_lines],
        "differences": tables.claim_rows(data, stats),
        **{table.name: tables.table_csv(table) for table in shown},
        "problems": _problem_rows(data),
    }
    if within:
        files["matched-budgets"] = matched_budget_csv(within)
    if budget:
        files["budget"] = [["quantity", *methods], *([label, *cells] for label, cells in budget)]
    return {
        "files": files,
        "data": data,
        "paper": paper,
        "title": title(data),
        "introduction": introduction(data, stats),
        "claims": claims,
        "multiplicity": multiplicity(claims),
        "notes": [*data.notes, *baseline_notes],
        "tables": [(table, csv_link(csv_text(tables.table_csv(table)))) for table in shown],
        "figures": [(figure, Markup(to_svg(figure)), csv_link(to_csv(figure))) for figure in figures],
        "methods": methods,
        "budget": budget,
        "matches": budget_matches(data),
        "within": [(one, budget_heading(one), MEANING[one.unit], budget_lines(one)) for one in within],
        "within_notes": within_notes,
        "within_link": csv_link(csv_text(matched_budget_csv(within))),
        "baselines": baselines,
        "matched": matched,
        "matched_note": matched_note,
        "settings": setting_rows(data),
        "runs": run_rows(data),
        "commands": reproduce(data),
        "explorer": build_explorer(data, colours, text_bytes, say),
    }


def _problem_rows(data: Comparison) -> list[list[Any]]:
    """task, problem, and the correct counts of every model."""
    names = ["base", *(f"{m.label} seed {seed}" for m in data.methods for seed in m.seeds)]
    rows: list[list[Any]] = [["task", "problem", "samples", *names]]
    for task in data.tasks:
        stores = [task.base, *(store for m in data.methods for store in task.stores[m.key])]
        counts = [store.table.correct.sum(axis=1).tolist() for store in stores]
        ids = task.base.table.problem_ids
        rows += [[task.name, name, data.samples, *found] for name, *found in zip(ids, *counts, strict=True)]
    return rows
