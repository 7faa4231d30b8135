"""`broadreach analyze threshold`: what is left of the scores when small (or other) parts of the update are reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.analysis.threshold import Removed
    from broadreach.commands.analyze.ask import AskOptions, Variant
    from broadreach.types import Centre


def threshold(
    run: Annotated[str, typer.Argument(help="A run folder.")],
    taus: Annotated[
        str | None, typer.Option("--taus", help="Thresholds (default: those that remove the published shares).")
    ] = None,
    shares: Annotated[
        str | None, typer.Option("--shares", help="Instead of --taus: shares of moved coordinates to reset.")
    ] = None,
    controls: Annotated[
        str, typer.Option("--controls", help="Which parts are reset.")
    ] = "threshold,random-count,random-energy,keep-smallest",
    step: Annotated[int | None, typer.Option("--step", help="Update of the run (default: the last).")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Default: the run's own.")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Default: the run's eval.split.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Responses a problem.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Only the first so many problems.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature")] = None,
    k: Annotated[str, typer.Option("--k", help="K of Pass@K (default: 1 and all responses).")] = "",
    seed: Annotated[int, typer.Option("--seed", help="Of the random controls.")] = 0,
    out: Annotated[str | None, typer.Option("--out", help="Default: RUN/analysis.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting of the run.")] = None,
) -> None:
    """Pass@1 and Pass@K of thresholded updates (Figure 4), with controls of equal count and equal energy.

    Differences to the full update are paired by problem. Responses lie in RUN/analysis/threshold/CONTROL-TAU/, and an
    interrupted analysis goes on where it stopped.
    """
    from broadreach.analysis.threshold import SHARES
    from broadreach.commands.analyze.ask import AskOptions
    from broadreach.commands.lists import numbers, whole_numbers

    ks = whole_numbers(k, "--k") if k else ()
    options = AskOptions(task, split, samples, problems, temperature, ks, tuple(overrides or ()))
    if taus is not None and shares is not None:
        raise UserError("give --taus or --shares, not both")
    chosen = numbers(taus, "--taus") if taus is not None else None
    reset = numbers(shares, "--shares") if shares is not None else SHARES
    if not all(0 < share < 1 for share in reset):
        raise UserError(f"--shares {shares}: give shares between 0 and 1, for example 0.5,0.78,0.95")
    _run(run, chosen, reset, tuple(part.strip() for part in controls.split(",")), step, options, seed, out)


def _run(
    target: str,
    taus: tuple[float, ...] | None,
    shares: tuple[float, ...],
    controls: tuple[str, ...],
    step: int | None,
    options: AskOptions,
    seed: int,
    out: str | None,
) -> None:
    from broadreach.analysis.drift_check import check_taus
    from broadreach.analysis.threshold import CONTROLS, taus_for
    from broadreach.commands.analyze.ask import ask, settings
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.analyze.weights import default_out
    from broadreach.models.locate import locate
    from broadreach.runs.folder import RunFolder
    from broadreach.training.rebuild import rebuild

    unknown = [control for control in controls if control not in CONTROLS]
    if unknown:
        raise UserError(f"--controls {unknown[0]} is none of {', '.join(CONTROLS)}")
    if taus is not None:
        check_taus(taus)
    run = RunFolder(target)
    config = settings(run, options)
    base, final = rebuild(run, 0)[0], rebuild(run, step)[0]
    taus = taus or taus_for(base, final, shares)
    removed: dict[str, Removed] = {}
    variants = _variants(base, final, taus, controls, seed, removed)
    place = default_out(out, run, "")
    from rich.console import Console

    from broadreach.commands.progress import problem_bar

    with problem_bar(Console(stderr=True)) as progress:
        siblings = run.path.resolve().parent
        answers = ask(config, locate(config.model.path), variants, place / "threshold", progress, siblings)
    rows = _rows({answer.name: answer for answer in answers}, taus, controls, removed, options.ks)
    facts: dict[str, Any] = {
        "run": target,
        "step": step,
        "taus": taus,
        "controls": controls,
        "seed": seed,
        "task": config.task.name,
    }
    facts |= {"split": config.eval.split, "samples": config.eval.samples, "temperature": config.eval.temperature}
    paths = write_analysis(place, "threshold", {"settings": facts, "rows": rows}, rows)
    _show(rows)
    print(f"{paths[0]}\n{paths[1]}")


def _variants(
    base: Centre,
    final: Centre,
    taus: tuple[float, ...],
    controls: tuple[str, ...],
    seed: int,
    removed: dict[str, Removed],
) -> list[Variant]:
    """Base, full update, and every control at every tau; making weights fills `removed`."""
    from broadreach.analysis.threshold import thresholded

    def make(control: str, tau: float) -> Centre:
        weights, removed[_name(control, tau)] = thresholded(base, final, tau, control, seed)
        return weights

    found: list[Variant] = [("base", lambda: base), ("full", lambda: final)]
    for control in controls:
        found += [(_name(control, tau), lambda c=control, t=tau: make(c, t)) for tau in taus]  # type: ignore[misc]
    return found


def _name(control: str, tau: float) -> str:
    return f"{control}-{tau:g}"


def _rows(
    answers: dict[str, Any],
    taus: tuple[float, ...],
    controls: tuple[str, ...],
    removed: dict[str, Removed],
    ks: tuple[int, ...],
) -> list[dict[str, Any]]:
    from broadreach.commands.analyze.ask import score_rows

    references = {"full": answers["full"], "base": answers["base"]}
    nothing = {"tau": None, "sparsity": 0.0, "energy_removed": 0.0}
    rows = score_rows(answers["full"], {"base": answers["base"]}, ks, {"control": "full", **nothing})
    everything = {"tau": None, "sparsity": 1.0, "energy_removed": 1.0}
    rows += score_rows(answers["base"], {"full": answers["full"]}, ks, {"control": "base", **everything})
    for control in controls:
        for tau in taus:
            gone = removed[_name(control, tau)]
            facts = {"control": control, "tau": tau, "sparsity": gone.share, "energy_removed": gone.energy}
            rows += score_rows(answers[_name(control, tau)], references, ks, facts)
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    from broadreach.commands.analyze.ask import shown
    from broadreach.commands.analyze.output import print_table

    table = []
    for row in rows:
        if row["metric"] == "pass":
            tau = "" if row["tau"] is None else f"{row['tau']:.3g}"
            cells = [row["control"], tau, f"{100 * row['sparsity']:.1f}", f"{100 * row['energy_removed']:.1f}"]
            table.append([*cells, str(row["k"]), shown(row), shown(row, "full")])
    columns = ["control", "tau", "reset %", "energy gone %", "K", "Pass@K %", "minus full, paired"]
    print_table("thresholded updates", columns, table)
