"""`broadreach compare`: several runs on one page, with what their intervals say about the paper's claims."""

from __future__ import annotations

from typing import Annotated

import typer

from broadreach.types import UserError


def compare(
    runs: Annotated[
        list[str], typer.Argument(help="Run folders: any methods, several seeds each, all evaluated alike.")
    ],
    out: Annotated[str, typer.Option("--out", help="Where to write.")] = "report",
    k: Annotated[str, typer.Option("--k", help="Which K the tables show, separated by commas.")] = "1,16,32",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write OUT/index.html: verdicts, tables, figures and a problem explorer; it opens offline."""
    from rich.console import Console

    from broadreach.report.comparison_page import write_comparison

    console = Console(highlight=False, soft_wrap=True)
    with console.status("reading") as status:

        def say(text: str) -> None:
            plain = text.replace("[", "\\[")
            if console.is_terminal:
                status.update(plain)
            else:
                console.print(plain)

        written = write_comparison(runs, out, ks=_numbers(k), progress=say)
    for claim in written.claims:
        console.print(f"{claim.number:3} {claim.verdict:17} {claim.statement}".replace("[", "\\["))
    print(f"report: {written.page}")
    if show:
        import webbrowser

        webbrowser.open(written.page.resolve().as_uri())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise UserError(f"--k {text}: give whole numbers of 1 or more, for example --k 1,16,32")
    return found
