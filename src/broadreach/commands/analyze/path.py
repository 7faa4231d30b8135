"""`broadreach analyze path`: scores along the line through two sets of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.commands.analyze.ask import Answer, AskOptions


def path(
    run: Annotated[str, typer.Argument(help="A run folder: the line from its base (0) to its last weights (1).")],
    other: Annotated[
        str | None, typer.Option("--other", help="A second run of the same base: from the weights of RUN to its own.")
    ] = None,
    points: Annotated[
        str, typer.Option("--points", help="Places on the line; beyond 0 and 1 it goes on straight.")
    ] = "-0.5,0,0.25,0.5,0.75,1,1.25,1.5",
    step: Annotated[int | None, typer.Option("--step", help="Update of RUN (default: the last).")] = None,
    other_step: Annotated[int | None, typer.Option("--other-step", help="Update of the second run.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Default: the run's own.")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Default: the run's eval.split.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Responses a problem.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Only the first so many problems.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature")] = None,
    k: Annotated[str, typer.Option("--k", help="K of Pass@K (default: 1 and all responses).")] = "",
    out: Annotated[str | None, typer.Option("--out", help="Default: RUN/analysis.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting of the run.")] = None,
) -> None:
    """Reward, Pass@1 and Pass@K of start + t * (end - start); differences to the ends are paired by problem.

    From a run's base, t is a factor on its update. Responses lie in RUN/analysis/path/, and an interrupted analysis
    goes on where it stopped.
    """
    from broadreach.analysis.path import check_points
    from broadreach.commands.analyze.ask import AskOptions
    from broadreach.commands.lists import numbers, whole_numbers

    chosen = numbers(points, "--points")
    check_points(chosen)
    if other is None and other_step is not None:
        raise UserError("--other-step needs --other")
    ks = whole_numbers(k, "--k") if k else ()
    options = AskOptions(task, split, samples, problems, temperature, ks, tuple(overrides or ()))
    _run((run, other), (step, other_step), chosen, options, out)


def _run(
    targets: tuple[str, str | None],
    steps: tuple[int | None, int | None],
    points: tuple[float, ...],
    options: AskOptions,
    out: str | None,
) -> None:
    from rich.console import Console

    from broadreach.analysis.drift_check import check_models
    from broadreach.analysis.path import interpolate
    from broadreach.commands.analyze.ask import Variant, ask, settings
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.analyze.weights import default_out
    from broadreach.commands.progress import problem_bar
    from broadreach.models.locate import locate
    from broadreach.runs.files import file_name
    from broadreach.runs.folder import RunFolder
    from broadreach.training.rebuild import rebuild

    run = RunFolder(targets[0])
    config = settings(run, options)
    first = rebuild(run, steps[0])[0]
    if targets[1] is None:
        start, end, folder = rebuild(run, 0)[0], first, "path"
    else:
        second = RunFolder(targets[1])
        start, end, folder = first, rebuild(second, steps[1])[0], f"path-{file_name(second.path.name)}"
    check_models(start, end)
    variants: list[Variant] = [(f"t{t:+g}", lambda t=t: interpolate(start, end, t)) for t in points]  # type: ignore[misc]
    place = default_out(out, run, "")
    with problem_bar(Console(stderr=True)) as progress:
        siblings = run.path.resolve().parent
        answers = ask(config, locate(config.model.path), variants, place / folder, progress, siblings)
    rows = _rows(dict(zip(points, answers, strict=True)), options.ks)
    facts: dict[str, Any] = {
        "run": targets[0],
        "other": targets[1],
        "steps": steps,
        "points": points,
        "task": config.task.name,
    }
    facts |= {"split": config.eval.split, "samples": config.eval.samples, "temperature": config.eval.temperature}
    paths = write_analysis(place, folder, {"settings": facts, "rows": rows}, rows)
    _show(rows)
    print(f"{paths[0]}\n{paths[1]}")


def _rows(answers: dict[float, Answer], ks: tuple[int, ...]) -> list[dict[str, Any]]:
    from broadreach.commands.analyze.ask import score_rows

    ends = {name: answers[t] for name, t in (("start", 0.0), ("end", 1.0)) if t in answers}
    rows = []
    for t, answer in answers.items():
        references = {name: one for name, one in ends.items() if one is not answer}
        rows += score_rows(answer, references, ks, {"t": t})
    return rows


def _show(rows: list[dict[str, Any]]) -> None:
    from broadreach.commands.analyze.ask import shown
    from broadreach.commands.analyze.output import print_table

    table = []
    for row in rows:
        name = f"Pass@{row['k']} %" if row["metric"] == "pass" else "reward (x 100)"
        table.append([f"{row['t']:+g}", name, shown(row), shown(row, "start"), shown(row, "end")])
    print_table("along the line", ["t", "measure", "value", "minus start, paired", "minus end, paired"], table)
