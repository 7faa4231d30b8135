"""The `analyze` commands, one file each."""

from __future__ import annotations

import typer

from broadreach.commands.analyze import diversity, drift, estimator, forgetting, null, path, precision, probe, threshold

app = typer.Typer(help="Measure what training changed: weights, coverage, diversity, forgetting.", no_args_is_help=True)
app.command("drift")(drift.drift)
app.command("null")(null.null)
app.command("threshold")(threshold.threshold)
app.command("forgetting")(forgetting.forgetting)
app.command("path")(path.path)
app.command("precision")(precision.precision)
app.command("diversity")(diversity.diversity)
app.command("estimator")(estimator.estimator)
app.command("probe")(probe.probe)
