"""`broadreach analyze diversity`: success and policy diversity of a run's populations, and the theory's quantities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.analysis.diversity_measure import StepMeasures


def diversity(
    run: Annotated[str, typer.Argument(help="A run folder.")],
    step: Annotated[int | None, typer.Option("--step", min=0, help="After which update (default: the last).")] = None,
    steps: Annotated[str | None, typer.Option("--steps", help="Several steps, for example 0,20,40.")] = None,
    members: Annotated[int | None, typer.Option("--members", help="Members (default: the run's population).")] = None,
    samples: Annotated[int, typer.Option("--samples", help="Responses of a member to a prompt.")] = 8,
    problems: Annotated[int, typer.Option("--problems", min=2, help="The first so many problems of the split.")] = 32,
    split: Annotated[str, typer.Option("--split", help="train or test.")] = "test",
    sigma: Annotated[float | None, typer.Option("--sigma", help="Default: that of the update that follows.")] = None,
    temperature: Annotated[float, typer.Option("--temperature", help="Of the policies; above 0.")] = 1.0,
    centre_samples: Annotated[int, typer.Option("--centre-samples", help="Responses of a centre to a prompt.")] = 64,
    k: Annotated[str, typer.Option("--k", help="K of the coverage J_K.")] = "1,4,16",
    gate: Annotated[float, typer.Option("--lambda", help="Strength of the oracle gate.")] = 1.0,
    policy_responses: Annotated[
        int, typer.Option("--policy-responses", min=0, help="Responses a prompt scored for JS_pol (0: leave it out).")
    ] = 8,
    gradients: Annotated[
        int, typer.Option("--gradients", min=0, help="Gradients a prompt for Lemma 1 (0: leave it out).")
    ] = 4,
    seed: Annotated[int, typer.Option("--seed", help="Of the sampling noise.")] = 1,
    out: Annotated[str | None, typer.Option("--out", help="Default: RUN/analysis.")] = None,
) -> None:
    """Success probabilities of every member and prompt at chosen steps, and what the theory says about them.

    JS_succ with bias correction and permutation null, JS_pol, P_pop against P_same, weights, gate, condition (13),
    Lemma 1, entropies; intervals over prompts. What was drawn is kept, so an interrupted analysis goes on.
    """
    from pathlib import Path

    from broadreach.commands.analyze.diversity_run import DiversityOptions, measure_step, open_run
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.lists import whole_numbers

    ks = _ks(k, centre_samples)
    sizes = (members, samples, problems, split, sigma, temperature, centre_samples)
    options = DiversityOptions(*sizes, ks, gate, policy_responses, gradients, seed)
    opened = open_run(run, options)
    if step is not None and steps is not None:
        raise UserError("give --step or --steps, not both")
    wanted = list(whole_numbers(steps, "--steps", 0)) if steps else [opened.last if step is None else step]
    for at in wanted:
        if not 0 <= at <= opened.last:
            raise UserError(f"run {run} has updates 0 (the base) to {opened.last}: there is no update {at}")
    place = Path(out) if out else opened.folder.path / "analysis"
    rows: list[dict[str, Any]] = []
    values: dict[str, Any] = {"run": run, "options": options.facts(), "steps": {}}
    for at in wanted:
        facts, found = measure_step(opened, at, place / "diversity")
        step_rows = [{"step": at, **value.row()} for value in found.values]
        rows += step_rows
        nulls = {name: _null(null) for name, null in found.nulls.items()}
        values["steps"][str(at)] = {**facts, "values": step_rows, "null": nulls, "condition_13": found.condition}
        _print(at, facts, found)
        paths = write_analysis(place, "diversity", values, rows)  # after every step: a kill keeps the finished ones
    typer.echo(f"{paths[0]}  {paths[1]}")


def _ks(text: str, centre_samples: int) -> tuple[int, ...]:
    from broadreach.commands.lists import whole_numbers

    ks = whole_numbers(text, "--k")
    if max(ks) > centre_samples:
        raise UserError(
            f"--k {max(ks)} needs as many responses of the centre: give --centre-samples {max(ks)}, or lower --k"
        )
    return ks


def _null(null: Any) -> dict[str, Any]:
    return {name: getattr(null, name) for name in null.__slots__}


def _print(step: int, facts: dict[str, Any], found: StepMeasures) -> None:
    from broadreach.commands.analyze.output import print_table

    title = (
        f"step {step}: {facts['members']} members, {facts['samples']} responses, {facts['problems']} prompts, "
        f"sigma {facts['sigma']:g}, temperature {facts['temperature']:g}"
    )
    rows = []
    for value in found.values:
        entry = value.interval
        rows.append((value.name, f"{entry.value:.4g}", f"[{entry.low:.4g}, {entry.high:.4g}]", value.equation))
    print_table(title, ("quantity", "value", "95 % over prompts", "eq."), rows)
    for name, null in found.nulls.items():
        typer.echo(f"{name}: equal members would show {null.mean:.4g} (plug-in); p = {null.p_value:.3g}")
    typer.echo(f"weights: {facts['weights']}")
    for k, held in found.condition.items():
        if held["held"] is None:
            typer.echo(f"condition (13), K = {k}: not defined, {held['note']}")
        else:
            word = ("holds" if held["held"] else "fails") + ("" if held["certain"] else " (interval spans zero)")
            typer.echo(f"condition (13), K = {k}: {word}; {held['note']}")
