"""`broadreach analyze precision`: what the published in-place arithmetic alone does to the weights of a run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from broadreach.types import Centre, UserError


def precision(
    run: Annotated[str, typer.Argument(help="A run folder of an ES run; its seeds and coefficients are replayed.")],
    step: Annotated[int | None, typer.Option("--step", help="Up to which update (default: the last).")] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="Type in which the published arithmetic works.")] = "bfloat16",
    score: Annotated[
        bool, typer.Option("--score", help="Evaluate both sets of weights besides (Pass@1, Pass@K).")
    ] = False,
    samples: Annotated[int | None, typer.Option("--samples", help="Responses a problem.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Only the first so many problems.")] = None,
    out: Annotated[str | None, typer.Option("--out", help="Default: RUN/analysis.")] = None,
) -> None:
    """Replay the ledger's coefficients on the same directions, once exactly and once in place in the model's type.

    Both start from the base rounded to that type, so that the arithmetic is the only difference. Rewards are not drawn
    again: had they been, they would differ from the first update on.
    """
    from broadreach.analysis.drift import drift
    from broadreach.commands.analyze.output import write_analysis
    from broadreach.commands.analyze.weights import default_out
    from broadreach.models.weights import torch_dtype
    from broadreach.runs.folder import RunFolder

    torch_dtype(dtype)
    folder = RunFolder(run)
    base, ends = _replay(folder, step, dtype)
    found = {name: drift(base, end) for name, end in ends.items()}
    rows: list[dict[str, Any]] = []
    for name, one in found.items():
        for part in (one.total, *one.kinds):
            row: dict[str, Any] = {"precision": name, "part": part.name, "parameters": part.size}
            row |= {"relative_l2": part.relative, "rms_change": part.rms, "max_change": part.maximum}
            row |= {"moved": part.moved / part.size, "of_top_100": _top(one, part.name)}
            rows.append(row | {f"s_{tau:g}": share for tau, share in zip(one.taus, part.sparsity, strict=True)})
    between = drift(ends["exact"], ends["paper"]).total.relative
    values: dict[str, Any] = {"settings": {"run": run, "step": step, "dtype": dtype}, "between": between, "rows": rows}
    place = default_out(out, folder, "")
    if score:
        values["scores"] = _scores(folder, ends, place, samples, problems)
    paths = write_analysis(place, "precision", values, rows)
    _show(rows, between)
    for row in values.get("scores", []):
        if row["metric"] == "pass":
            print(f"Pass@{row['k']} {row['precision']}: {_percent(row)}")
    print(f"{paths[0]}\n{paths[1]}")


def _replay(folder: Any, step: int | None, dtype: str) -> tuple[Centre, dict[str, Centre]]:
    """Base and both ends."""
    from broadreach.analysis.null_walk import round_to
    from broadreach.commands.analyze.progress import watch
    from broadreach.models.locate import locate
    from broadreach.models.weights import load_centre
    from broadreach.noise.advance import advance
    from broadreach.runs.ledger import read_ledger
    from broadreach.types import Perturbation

    config = folder.config()
    contents = read_ledger(folder.ledger_file)
    if contents.header is None:
        raise UserError(f"{folder.path} has no ledger: give an ES run (of a sequence, one of its stage folders)")
    last = len(contents.entries)
    step = last if step is None else step
    if not 1 <= step <= last:
        raise UserError(f"run {folder.path} has updates 1 to {last}: there is no update {step}")
    if any(entry.record.update is not None and entry.record.update.anchor_decay for entry in contents.entries):
        raise UserError(f"{folder.path} decays towards its base, which the published arithmetic does not know")
    header = contents.header
    base = {name: round_to(array, dtype) for name, array in load_centre(locate(config.model.path)).items()}
    ends = {name: {key: array.copy() for key, array in base.items()} for name in ("exact", "paper")}
    with watch("replaying") as progress:
        for number, entry in enumerate(contents.entries[:step], start=1):
            record = entry.record
            for name, centre in ends.items():
                place = Perturbation(header.seed, record.step, record.sigma)
                members = len(record.rewards) // (2 if header.estimator == "two_point" else 1)
                options: dict[str, Any] = {"model_dtype": dtype, "population": members, "estimator": header.estimator}
                advance(centre, record.update, place, precision=name, **options)
            progress(number, step)
    return base, ends


def _scores(
    folder: Any, ends: dict[str, Centre], place: Any, samples: int | None, problems: int | None
) -> list[dict[str, Any]]:
    from rich.console import Console

    from broadreach.commands.analyze.ask import AskOptions, ask, score_rows, settings
    from broadreach.commands.progress import problem_bar
    from broadreach.models.locate import locate

    config = settings(folder, AskOptions(samples=samples, problems=problems))
    with problem_bar(Console(stderr=True)) as progress:
        variants = [(name, lambda end=end: end) for name, end in ends.items()]
        answers = ask(config, locate(config.model.path), variants, place / "precision", progress)
    rows = score_rows(answers[0], {}, (), {"precision": "exact"})
    return rows + score_rows(answers[1], {"exact": answers[0]}, (), {"precision": "paper"})


def _top(found: Any, name: str) -> float:
    count = sum(name in ("model", place.kind) for place in found.top)
    return count / max(len(found.top), 1)


def _percent(row: dict[str, Any]) -> str:
    from broadreach.commands.analyze.ask import shown

    change = shown(row, "exact")
    return (shown(row) + (f", minus exact, paired: {change}" if change else "")).replace("\\[", "[")


def _show(rows: list[dict[str, Any]], between: float) -> None:
    from broadreach.commands.analyze.output import print_table

    columns = ["precision", "part", "rel. L2 %", "rms", "max", "moved %", "of the top 100 %"]
    table = [
        [
            row["precision"],
            row["part"],
            f"{100 * row['relative_l2']:.4f}",
            f"{row['rms_change']:.2e}",
            f"{row['max_change']:.3e}",
            f"{100 * row['moved']:.2f}",
            f"{100 * row['of_top_100']:.0f}",
        ]
        for row in rows
    ]
    print_table("the same coefficients in both arithmetics", columns, table)
    print(f"the two ends lie {100 * between:.4f} % apart (relative L2)")
