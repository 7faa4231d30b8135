"""The `broadreach` program: each command is one file in commands/; heavy imports wait until a command runs."""

from __future__ import annotations

import sys

import typer

from broadreach.commands import (
    compare,
    doctor,
    evaluate,
    paper,
    replay,
    report,
    runs,
    study,
    sweep,
    tasks,
    train,
    verify,
)
from broadreach.commands.analyze import app as analyze
from broadreach.types import UserError

app = typer.Typer(
    name="broadreach",
    help="Post-train language models with Evolution Strategies, and measure what changed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("train")(train.train)
app.command("eval")(evaluate.evaluate)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("study")(study.study)
app.command("sweep")(sweep.sweep)
app.command("replay")(replay.replay)
app.command("runs")(runs.runs)
app.command("verify")(verify.verify)
app.command("doctor")(doctor.doctor)
app.add_typer(tasks.app, name="tasks")
app.add_typer(analyze.app, name="analyze")
app.add_typer(paper.app, name="paper")


def main() -> None:
    """Run the program; a user's mistake is one line on standard error and exit code 2."""
    try:
        app()
    except UserError as error:
        print(f"broadreach: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("broadreach: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
