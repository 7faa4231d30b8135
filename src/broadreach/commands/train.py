"""`broadreach train`: start a run, or go on with it."""

from __future__ import annotations

from typing import Annotated

import typer

from broadreach.types import UserError

Settings = Annotated[
    list[str] | None, typer.Argument(help="Recipe names or TOML files, merged left to right (default: demo).")
]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="One setting, for example --set es.sigma=0.001.")]


def train(
    settings: Settings = None,
    overrides: Overrides = None,
    run: Annotated[str | None, typer.Option("--run", help="Run folder (the same as --set run.dir=...).")] = None,
    resume: Annotated[str | None, typer.Option("--resume", help="Go on with the run in this folder.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the settings and the cost, train nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say only warnings and the end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for logs.")] = False,
) -> None:
    """Train a model. The same command goes on with an interrupted run."""
    from broadreach.experiments.catalogue import resolve

    names, extra = list(settings or []), list(overrides or [])
    if resume is not None:
        names, extra = [*_resumed(resume, names), *names], [*extra, f"run.dir={resume}"]
    if run is not None:
        extra.append(f"run.dir={run}")
    config = resolve(names or ["demo"], extra)
    if dry_run:
        from broadreach.commands.dry_run import show

        show(config)
        return
    _train(config, quiet, as_json)


def _resumed(folder: str, names: list[str]) -> list[str]:
    from broadreach.runs.folder import RunFolder

    if names:
        raise UserError("--resume takes the settings from the run folder: name no recipe beside it")
    RunFolder(folder).config()
    return [f"{folder}/config.toml"]


def _train(config: object, quiet: bool, as_json: bool) -> None:
    from broadreach.commands.api import run_folder, start
    from broadreach.commands.progress import make_reporter
    from broadreach.config import Config

    assert isinstance(config, Config)
    run = run_folder(config)
    with make_reporter(quiet, as_json) as reporter:
        try:
            start(config, run, reporter)
        except KeyboardInterrupt:
            reporter.warn(f"stopped; nothing is lost. Go on with: broadreach train --resume {run.path}")
            raise
        reporter.note(f"weights: {run.export}   next: broadreach eval {run.path}, then broadreach report {run.path}")
