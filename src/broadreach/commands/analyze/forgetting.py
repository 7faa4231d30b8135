"""`broadreach analyze forgetting`: what training on one task changed on others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.commands.analyze.ask import AskOptions
    from broadreach.runs.folder import RunFolder


def forgetting(
    runs: Annotated[list[str], typer.Argument(help="Evaluated run folders; or one run of stages on several tasks.")],
    samples: Annotated[int | None, typer.Option("--samples", help="Of a sequence: responses a problem.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Of a sequence: the first so many.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Of a sequence.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Coverage at K (default: all responses).")] = None,
    out: Annotated[str | None, typer.Option("--out", help="Default: RUN/analysis of the first run.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting of the evaluation.")] = None,
) -> None:
    """Change on every evaluated task, after minus before, paired by problem, and the average over held-out tasks.

    A run of stages on several tasks is evaluated after every stage on every task: accuracy matrix, average forgetting,
    backward and forward transfer. Anchored decay is a setting of the run (es.anchor_decay): compare two runs.
    """
    from broadreach.commands.analyze.ask import AskOptions
    from broadreach.commands.analyze.forgetting_stages import stage_tasks
    from broadreach.runs.folder import RunFolder

    folders = [RunFolder(run) for run in runs]
    options = AskOptions(None, None, samples, problems, temperature, (), tuple(overrides or ()))
    if len(folders) == 1 and len(set(stage_tasks(folders[0]))) > 1:
        _sequence(folders[0], options, k, out)
        return
    _held_out(folders, k, out)


def _held_out(folders: list[RunFolder], k: int | None, out: str | None) -> None:
    from broadreach.commands.analyze.output import print_table, write_analysis

    rows: list[dict[str, Any]] = []
    for folder in folders:
        rows += _change_rows(folder, k)
    place = Path(out) if out is not None else folders[0].path / "analysis"
    settings = {"runs": [str(folder.path) for folder in folders], "k": k}
    paths = write_analysis(place, "forgetting", {"settings": settings, "rows": rows}, rows)
    table = [
        [
            Path(row["run"]).name,
            row["task"],
            row["role"],
            f"{row['metric']}@{row['k']}",
            f"{100 * row['before']:.1f}",
            f"{100 * row['after']:.1f}",
            f"{100 * row['change']:+.1f} \\[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]",
        ]
        for row in rows
    ]
    columns = ["run", "task", "role", "measure", "before %", "after %", "change, paired"]
    print_table("change by training", columns, table)
    print(f"{paths[0]}\n{paths[1]}")


def _change_rows(folder: RunFolder, k: int | None) -> list[dict[str, Any]]:
    """Pass@1 and Pass@K of every task that was evaluated before and after, and the mean over the held-out ones."""
    from broadreach.evaluation.metrics import pass_curve
    from broadreach.evaluation.seeds import suite_differences
    from broadreach.evaluation.summary import refuse_unlike
    from broadreach.evaluation.table import load

    own = folder.config().task.name
    pairs = {}
    for before in sorted(folder.evaluations.glob("**/base/samples.jsonl")):
        after = before.parent.with_name("final" if folder.is_done() else "latest") / before.name
        if "baselines" not in before.parts and after.exists():
            first, second = load(before), load(after)
            refuse_unlike(first, second)
            pairs[first.header.task] = (pass_curve(first.correct), pass_curve(second.correct))
    if not pairs:
        raise UserError(f"{folder.path} has no evaluated pair base/final: run `broadreach eval {folder.path}` first")
    held_out = {task: pair for task, pair in pairs.items() if task != own}
    groups = [(task, "target" if task == own else "held out", [pair]) for task, pair in pairs.items()]
    if len(held_out) > 1:
        groups.append(("average", "held out", list(held_out.values())))
    rows = []
    for task, role, chosen in groups:
        found = suite_differences([pair[1] for pair in chosen], [pair[0] for pair in chosen])
        for at in sorted({1, k or len(found.intervals)}):
            interval = found.at(at)
            means = [sum(float(pair[i][:, at - 1].mean()) for pair in chosen) / len(chosen) for i in (0, 1)]
            row: dict[str, Any] = {"run": str(folder.path), "task": task, "role": role, "metric": "pass", "k": at}
            row |= {"before": means[0], "after": means[1], "change": interval.value}
            rows.append(row | {"low": interval.low, "high": interval.high, "problems": found.problems})
    return rows


def _sequence(folder: RunFolder, options: AskOptions, k: int | None, out: str | None) -> None:
    from broadreach.commands.analyze.forgetting_stages import matrix_rows, measure_stages
    from broadreach.commands.analyze.output import print_table, write_analysis

    place = Path(out) if out is not None else folder.path / "analysis"
    found = measure_stages(folder, options, k, place / "forgetting")
    rows = [row for at, one in found.items() for row in matrix_rows(at, one)]
    settings: dict[str, Any] = {"run": str(folder.path), "samples": options.samples, "problems": options.problems}
    settings |= {"anchor_decay": folder.config().es.anchor_decay}
    paths = write_analysis(place, "forgetting", {"settings": settings, "rows": rows}, rows)
    for at, one in found.items():
        table = []
        for stage, line in enumerate(one.matrix):
            name = "base" if stage == 0 else f"after {one.tasks[stage - 1]}"
            table.append([name, *(f"{100 * c.value:.1f} \\[{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in line)])
        print_table(f"Pass@{at} in percent", ["stage", *one.tasks], table)
        for row in matrix_rows(at, one):
            if row["stage"] is None:
                ends = f"[{100 * row['low']:+.1f}, {100 * row['high']:+.1f}]"
                print(f"{row['measure']}: {100 * row['value']:+.1f} {ends}")
    print(f"{paths[0]}\n{paths[1]}")
