"""`broadreach analyze probe`: which sigma, and how many prompts a member, before training starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.analysis.probe import NoiseFloor, SigmaProbe

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The grid around the recipe's own sigma."""


def probe(
    target: Annotated[str, typer.Argument(help="A recipe, a TOML file, or a model (`nano`, a directory, a Hub id).")],
    task: Annotated[str | None, typer.Option("--task", help="Task (needed for a model).")] = None,
    sigmas: Annotated[str | None, typer.Option("--sigmas", help="Default: 1/4 to 4 times the recipe's.")] = None,
    members: Annotated[int, typer.Option("--members", min=4, help="Members of the population.")] = 16,
    prompts: Annotated[int, typer.Option("--prompts", min=2, help="Prompts of each of two batches.")] = 32,
    repeats: Annotated[int, typer.Option("--repeats", min=2, help="Evaluations of the centre.")] = 8,
    out: Annotated[str | None, typer.Option("--out", help="Default: runs/analysis/probe-NAME.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any setting of the recipe.")] = None,
) -> None:
    """Evaluate one population per sigma on two disjoint batches as training would, and recommend sigma and prompts.

    The variance of member rewards that the second batch confirms is signal; the rest is noise of the prompts (and of
    sampling above temperature 0). Training split; directions and sampling as in training, under an update number that
    no run uses.
    """
    from pathlib import Path

    from broadreach.analysis.probe import advise, floor_words
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.analyze.probe_run import measure_probe
    from broadreach.commands.lists import numbers
    from broadreach.runs.files import file_name

    config = _config(target, task, list(overrides or []))
    grid = numbers(sigmas, "--sigmas") if sigmas else tuple(factor * config.es.sigma for factor in FACTORS)
    if not grid or any(not sigma > 0 for sigma in grid):
        raise UserError("--sigmas: give positive numbers, for example 0.001,0.002,0.004")
    place = Path(out) if out else Path("runs/analysis") / f"probe-{file_name(target)}"
    probes, floor = measure_probe(config, sorted(set(grid)), members, prompts, repeats, place)
    advice = advise(probes, floor)
    rows = [_row(one, floor) for one in probes]
    values = {
        "target": target,
        "task": config.task.name,
        "temperature": config.sampling.temperature,
        "members": members,
        "prompts": prompts,
        "noise_floor": _floor(floor),
        "sigmas": rows,
        "advice": {"sigma": advice.sigma, "prompts": advice.prompts, "reason": advice.reason},
    }
    paths = write_analysis(place, "probe", values, rows)
    _print(probes, floor, members, prompts)
    typer.echo(floor_words(floor, prompts))
    typer.echo(f"advice: {advice.reason}")
    typer.echo(f"{paths[0]}  {paths[1]}")


def _config(target: str, task: str | None, overrides: list[str]) -> Any:
    """A recipe or TOML file by name, else a model."""
    from pathlib import Path

    from broadreach.config import load_config
    from broadreach.experiments.catalogue import recipe_names, resolve

    extra = [*([f"task.name={task}"] if task else []), *overrides]
    if target in recipe_names() or target.endswith(".toml") or Path(target).is_file():
        return resolve([target], extra)
    if task is None:
        raise UserError(
            f"{target} is no recipe ({', '.join(recipe_names())}); for a model, say what to ask: --task NAME"
        )
    return load_config([], [f"model.path={target}", *extra])


def _row(one: SigmaProbe, floor: NoiseFloor) -> dict[str, Any]:
    row: dict[str, Any] = {"sigma": one.sigma, "base_reward": floor.reward.value, "spread": one.spread}
    for name, interval in (("mean", one.mean), ("signal", one.signal), ("share", one.share)):
        row |= {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
    row["spread_over_repeats"] = one.spread / floor.repeats if floor.repeats else None
    return row | {"prompts_wanted": one.prompts_wanted}


def _floor(floor: NoiseFloor) -> dict[str, Any]:
    reward = floor.reward
    return {
        "reward": {"value": reward.value, "low": reward.low, "high": reward.high},
        "repeats": floor.repeats,
        "batches": floor.batches,
        "greedy": floor.greedy,
    }


def _print(probes: list[SigmaProbe], floor: NoiseFloor, members: int, prompts: int) -> None:
    from broadreach.commands.analyze.output import print_table

    lines = [
        (
            f"{one.sigma:g}",
            f"{one.mean.value:.3f}",
            f"{one.spread:.4f}",
            _share(one),
            "-" if one.prompts_wanted is None else str(one.prompts_wanted),
        )
        for one in probes
    ]
    title = f"base reward {floor.reward.value:.3f}; {members} members, two batches of {prompts} prompts"
    print_table(title, ("sigma", "mean reward", "spread", "share confirmed", "prompts for 50 %"), lines)


def _share(one: SigmaProbe) -> str:
    found = one.share
    if found.value != found.value:
        return "members equal on a batch"
    return f"{found.value:.0%} [{found.low:.0%}, {found.high:.0%}]"
