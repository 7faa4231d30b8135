"""`broadreach compare`: several runs on one page, with what their intervals say about the paper's claims."""

from __future__ import annotations

from typing import Annotated

import typer


def compare(
    runs: Annotated[
        list[str], typer.Argument(help="Run folders: any methods, several seeds each, all evaluated alike.")
    ],
    out: Annotated[str, typer.Option("--out", help="Where to write.")] = "report",
    k: Annotated[
        str | None, typer.Option("--k", help="Which K the tables show (default: those of 1, 16, 32 that are stored).")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write OUT/index.html: verdicts, tables, figures and a problem explorer; it opens offline."""
    from rich.console import Console

    from broadreach.commands.lists import whole_numbers
    from broadreach.commands.progress import plain
    from broadreach.report.comparison_page import write_comparison

    console = Console(highlight=False, soft_wrap=True)
    with console.status("reading") as status:

        def say(text: str) -> None:
            if console.is_terminal:
                status.update(plain(text))
            else:
                console.print(plain(text))

        written = write_comparison(runs, out, ks=whole_numbers(k, "--k") if k else None, progress=say)
    for claim in written.claims:
        console.print(plain(f"{claim.number:3} {claim.verdict:17} {claim.statement}"))
    print(f"report: {written.page}")
    if show:
        import webbrowser

        webbrowser.open(written.page.resolve().as_uri())
