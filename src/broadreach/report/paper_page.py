"""The paper's tables and figures as measured here: one self-contained page, with its files beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from broadreach.evaluation.summary import Json
from broadreach.report.claims import multiplicity
from broadreach.report.comparison_page import MARKS
from broadreach.report.files import csv_link
from broadreach.report.paper_about import about_rows, commands, second_rows
from broadreach.report.paper_figures import FigureBlock, figure_blocks
from broadreach.report.paper_files import VERDICTS, entries_csv, write_item, write_statements
from broadreach.report.paper_item import PaperItem
from broadreach.report.paper_tables import TableBlock, table_blocks
from broadreach.report.paper_words import heading, paper_name, scale_words
from broadreach.report.svg import Figure, save_pdf, to_csv, to_svg
from broadreach.runs.files import explained_disk_errors, write_atomically

STYLES = ("style.css", "compare.css", "paper.css")


@dataclass(frozen=True, slots=True)
class Shown:
    """One item, ready for the template."""

    item: PaperItem
    name: str
    """Table 4; empty for our own items."""
    heading: str
    tables: list[TableBlock]
    figures: list[FigureBlock]
    measured: bool
    """Whether it has numbers of ours."""
    command: str
    """What measures it."""
    csv: str
    """All its numbers, as a link that holds its own data; empty when it has none."""
    verdicts: tuple[tuple[str, int], ...]
    """(verdict, how many of its statements have it)."""


def write_paper_page(items: Sequence[PaperItem], about: Json, out_dir: str | Path) -> Path:
    """Write out_dir/index.html (self-contained), figures/*.pdf and *.csv, tables/*.csv; return the page's path.

    `about` says how the items were made (`paper_files.write_about`) and may be empty. UserError when the disk is full.
    """
    out = Path(out_dir)
    shown = [_shown(item, str(about.get("scale") or "")) for item in items]
    with explained_disk_errors(out):
        for name in ("figures", "tables"):
            (out / name).mkdir(parents=True, exist_ok=True)
        for figure in (axes.figure for one in shown for block in one.figures for axes in block.axes):
            save_pdf(figure, out / "figures" / f"{figure.name}.pdf")
            (out / "figures" / f"{figure.name}.csv").write_text(to_csv(figure), encoding="utf-8")
        for item in items:
            if item.entries:
                write_item(item, out / "tables")
        write_statements(items, out / "tables")
        write_atomically(out / "index.html", render(shown, about))
    return out / "index.html"


def render(shown: Sequence[Shown], about: Json) -> str:
    """The page as text: no script, and nothing may be fetched."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("broadreach.report")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(mark=MARKS, svg=_svg, figure_csv=_figure_csv)
    style = "\n".join(loader.get_source(environment, name)[0] for name in STYLES)
    return environment.get_template("paper.html.j2").render(_context(shown, about), style=Markup(style))


def _context(shown: Sequence[Shown], about: Json) -> dict[str, Any]:
    claims = [claim for one in shown for claim in one.item.statements]
    where = scale_words(str(about.get("scale") or "")) or "here"
    return {
        "title": f"Tables and figures of arXiv 2608.27351, measured {where}",
        "eyebrow": " · ".join(str(part) for part in (about.get("scale"), about.get("date")) if part),
        "words": about.get("words"),
        "items": shown,
        "groups": _contents(shown),
        "measured": sum(one.measured for one in shown),
        "tiles": [(verdict, sum(c.verdict == verdict for c in claims)) for verdict in VERDICTS],
        "claims": sorted(
            ((one, claim) for one in shown for claim in one.item.statements), key=lambda pair: pair[1].number
        ),
        "multiplicity": multiplicity(claims),
        "commands": commands([one.item.id for one in shown if one.measured], about),
        "made": about_rows(about),
        "seconds": second_rows(about),
    }


def _shown(item: PaperItem, scale: str) -> Shown:
    counted = Counter(claim.verdict for claim in item.statements)
    return Shown(
        item=item,
        name=paper_name(item),
        heading=heading(item),
        tables=table_blocks(item) if item.kind == "table" else [],
        figures=figure_blocks(item) if item.kind != "table" else [],
        measured=any(entry.origin == "ours" for entry in item.entries),
        command=f"broadreach paper run {item.id}" + (f" --scale {scale}" if scale else ""),
        csv=csv_link(entries_csv(item.entries)) if item.entries else "",
        verdicts=tuple((verdict, counted[verdict]) for verdict in VERDICTS if counted[verdict]),
    )


def _contents(shown: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    """(heading, items): the paper's tables, its figures, our own items."""
    kinds = {"Tables": "Table", "Figures": "Figure", "Beyond the paper": ""}
    found = [(title, [one for one in shown if one.name.partition(" ")[0] == kind]) for title, kind in kinds.items()]
    return [(title, some) for title, some in found if some]


def _svg(figure: Figure) -> Markup:
    return Markup(to_svg(figure))


def _figure_csv(figure: Figure) -> str:
    return csv_link(to_csv(figure))
