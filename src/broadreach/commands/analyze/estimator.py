"""`broadreach analyze estimator`: does subtracting a partner evaluation lower the variance? (Table 13)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.analysis.estimator_moments import Couplings
    from broadreach.evaluation.statistics import Interval

COLUMNS = (
    "corr_plus_base",
    "kappa_base",
    "corr_plus_minus",
    "kappa_pair",
    "within_kappa_base",
    "within_kappa_pair",
)
SHORT = {
    "regenerated_reward": "reward, ",
    "common_seed": "common seeds",
    "independent_seed": "independent",
    "supervised_cross_entropy": "cross-entropy",
    "mean_token_log_probability": "log-probability",
    "policy_sequence_loss": "sequence loss",
    "grpo_surrogate": "GRPO surrogate",
}


def estimator(
    model: Annotated[str, typer.Argument(help="`nano`, `smollm2`, a Hugging Face directory or a Hub id.")],
    task: Annotated[str, typer.Option("--task", help="Name of the task.")] = "nano-chain",
    sigmas: Annotated[str, typer.Option("--sigmas", help="Scales of the perturbation.")] = "1e-4,3e-4,1e-3",
    prompts: Annotated[int | None, typer.Option("--prompts", help="Prompts of a and c (default: 16).")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Generations a prompt (default: 16).")] = None,
    rollouts: Annotated[int | None, typer.Option("--rollouts", help="Fixed rollouts a prompt (default: 8).")] = None,
    targets: Annotated[int | None, typer.Option("--targets", help="Supervised problems (default: 32).")] = None,
    directions: Annotated[int | None, typer.Option("--directions", help="Noise directions (default: 4).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="8 x 4 x 2, 8 x 4 x 2 and 16 x 2 observations.")] = False,
    temperature: Annotated[float, typer.Option("--temperature", help="Of the generations.")] = 1.0,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", help="Longest response.")] = 64,
    split: Annotated[str, typer.Option("--split", help="train or test.")] = "train",
    seed: Annotated[int, typer.Option("--seed", help="Of directions and sampling.")] = 0,
    out: Annotated[str | None, typer.Option("--out", help="Default: runs/analysis/MODEL-TASK.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting.")] = None,
) -> None:
    """Correlations and kappas of three classes of objectives at theta + sigma eps, theta and theta - sigma eps.

    (a) reward of regenerated rollouts with common or independent generation seeds; (b) supervised cross-entropy of
    answers that the verifier accepts; (c) rollouts made once at the base and rescored. Below 1, subtraction helps.
    """
    from dataclasses import asdict

    from broadreach.analysis.estimator_measure import Protocol
    from broadreach.analysis.estimator_published import published
    from broadreach.commands.analyze.estimator_run import measure, open_model
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.lists import numbers

    chosen = {"prompts": prompts, "seeds": seeds, "rollouts": rollouts, "targets": targets, "directions": directions}
    sizes = Protocol(8, 4, 4, 16, 2) if quick else Protocol()
    protocol = Protocol(**{**asdict(sizes), **{name: size for name, size in chosen.items() if size is not None}})
    _check(protocol, grid := numbers(sigmas, "--sigmas"), temperature)
    settings = [f"sampling.temperature={temperature}", f"sampling.max_new_tokens={max_new_tokens}"]
    opened = open_model(model, task, [*settings, f"eval.split={split}", f"seed={seed}", *(overrides or [])], protocol)
    place = opened.place(out)
    found, notes = measure(opened, protocol, grid, place)
    rows = [_row(name, kind, sigma, result, published(name, kind, sigma)) for name, kind, sigma, result in found]
    facts = {"model": model, "task": task, "protocol": asdict(protocol), "sigmas": grid, "temperature": temperature}
    paths = write_analysis(
        place, "estimator", {**facts, "split": split, "seed": seed, "notes": notes, "rows": rows}, rows
    )
    _print(found, grid)
    for note in notes:
        typer.echo(note)
    typer.echo(f"{paths[0]}  {paths[1]}")


def _check(protocol: Any, sigmas: tuple[float, ...], temperature: float) -> None:
    if not sigmas or any(not sigma > 0 for sigma in sigmas):
        raise UserError("--sigmas: give positive numbers, for example 1e-4,3e-4,1e-3")
    if temperature <= 0:
        raise UserError("--temperature 0: greedy generations have no seeds to share; give a temperature above 0")
    for name in protocol.__slots__:
        least = 1 if name in ("directions", "seeds") else 2
        if getattr(protocol, name) < least:
            raise UserError(f"--{name} {getattr(protocol, name)}: give at least {least}")


def _row(name: str, kind: str, sigma: float, result: Couplings, paper: dict[str, float] | None) -> dict[str, Any]:
    row: dict[str, Any] = {"objective": name, "coupling": kind, "sigma": sigma, "observations": result.observations}
    for column in COLUMNS:
        interval: Interval = getattr(result, column)
        row |= {column: interval.value, f"{column}_low": interval.low, f"{column}_high": interval.high}
        row[f"{column}_paper"] = None if paper is None else paper.get(column)
    return row


def _print(found: list[tuple[str, str, float, Couplings]], grid: tuple[float, ...]) -> None:
    from broadreach.commands.analyze.output import print_table

    largest, reward = max(grid), "regenerated_reward"
    panels = {
        f"Table 13, objectives at sigma {largest:g}": [row for row in found if row[2] == largest],
        "Table 13, regenerated reward over sigma": [row for row in found if row[0] == reward and row[2] != largest],
    }
    heads = ("corr +,0", "kappa base", "corr +,-", "kappa pair", "within base", "within pair")
    for title, panel in panels.items():
        if panel:
            lines = [line for row in panel for line in _lines(*row)]
            print_table(f"{title} (intervals in the CSV file)", ("objective", "sigma", *heads), lines)


def _lines(name: str, kind: str, sigma: float, result: Couplings) -> list[tuple[str, ...]]:
    """Our row, and the paper's where it has one."""
    from broadreach.analysis.estimator_published import published

    cells = [_cell(getattr(result, column)) for column in COLUMNS]
    lines = [(SHORT.get(name, name) + SHORT.get(kind, ""), f"{sigma:g}", *cells)]
    paper = published(name, kind, sigma)
    if paper is not None:
        theirs = [f"{paper[column]:.3g}" if column in paper else "" for column in COLUMNS]
        lines.append(("  paper, on its own model", "", *theirs))
    return lines


def _cell(interval: Interval) -> str:
    return "undefined" if interval.value != interval.value else f"{interval.value:.3g}"
