"""`broadreach report`: one self-contained page about a run."""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    run: Annotated[str, typer.Argument(help="Run folder, finished or not.")],
    out: Annotated[str | None, typer.Option("--out", help="Where to write (default: RUN/report).")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write RUN/report/index.html: it opens offline and needs neither model nor accelerator to make."""
    from pathlib import Path

    from broadreach.report.html import write_report
    from broadreach.runs.folder import RunFolder

    folder = RunFolder(run)
    folder.config()
    page = write_report(folder.path, Path(out) if out else folder.path / "report")
    print(f"report: {page}")
    if show:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
