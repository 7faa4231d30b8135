"""`broadreach analyze null`: what noise alone would have done to the weights."""

from __future__ import annotations

from typing import Annotated

import typer


def null(
    target: Annotated[
        str, typer.Argument(help="A run folder (its ledger), a Hugging Face directory, or a model name.")
    ],
    paper: Annotated[
        str | None, typer.Option("--paper", help="Settings of a published run, e.g. qwen2.5-1.5b; its numbers beside.")
    ] = None,
    observed: Annotated[
        str | None, typer.Option("--observed", help="Trained weights to hold against the null (default: the run's).")
    ] = None,
    step: Annotated[int | None, typer.Option("--step", help="Update of the run (default: the last).")] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Updates T (not with a run).")] = None,
    members: Annotated[int | None, typer.Option("--members", help="Population N (not with a run).")] = None,
    engines: Annotated[
        str, typer.Option("--engines", help="Copies that share the members; each restores members / engines times.")
    ] = "1",
    sigma: Annotated[float | None, typer.Option("--sigma", help="Not with a run.")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Not with a run.")] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            "--precision",
            help="exact, saved (exact, then rounded), paper (in-place, published). Default: all that differ.",
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="Type of the served weights (default: as stored).")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Noise-only runs, each with a sample of its own.")] = 5,
    sample: Annotated[int, typer.Option("--sample", min=1, help="Coordinates in a sample, about.")] = 32_768,
    rewards: Annotated[
        str, typer.Option("--rewards", help="Of a run: shuffled (its own, among members) or normal.")
    ] = "shuffled",
    taus: Annotated[str | None, typer.Option("--taus", help="Thresholds (default: the paper's).")] = None,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the results (default: RUN/analysis).")] = None,
) -> None:
    """Predict drift, sparsity, layer profile and maxima of a run whose rewards know nothing of its members.

    Only a random sample of coordinates is walked, since under the null they move independently; its error is in every
    interval. Directions come from the noise table of real runs, but are not the run's own.
    """
    from broadreach.analysis.drift import TAUS
    from broadreach.analysis.null_paper import paper_run
    from broadreach.commands.analyze.null_run import NullOptions, run_null
    from broadreach.commands.lists import numbers, whole_numbers

    published = paper_run(paper) if paper is not None else None
    options = NullOptions(
        step=step,
        steps=steps,
        members=members,
        engines=whole_numbers(engines, "--engines"),
        sigma=sigma,
        alpha=alpha,
        precisions=None if precision is None else tuple(part.strip() for part in precision.split(",")),
        dtype=dtype,
        seeds=seeds,
        sample=sample,
        rewards=rewards,
        taus=numbers(taus, "--taus") if taus is not None else tuple(published.sparsity) if published else TAUS,
        paper=paper,
        observed=observed,
    )
    run_null(target, options, published, out)
