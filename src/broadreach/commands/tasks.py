"""`broadreach tasks list | show TASK | check TASK|all`: what there is, how it is asked, and that it grades right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.tasks.base import Task
    from broadreach.tasks.check import Check
    from broadreach.tasks.hygiene import Hygiene
    from broadreach.types import Problem

app = typer.Typer(help="List, show and check tasks.", no_args_is_help=True)

Options = Annotated[list[str] | None, typer.Option("--set", help="A task option, name=value (TOML); repeatable.")]
Split = Annotated[str, typer.Option(help="Which split.")]


@app.command("list")
def list_() -> None:
    """Every task that can be named: built in, from options, reasoning-gym, and from installed packages."""
    from broadreach.tasks.registry import list_tasks

    rows: list[tuple[str, ...]] = [("TASK", "FAMILY", "SPLITS", "LICENCE", "DATA", "WHERE FROM")]
    rows += [
        (
            info.name,
            *(cell or "-" for cell in (info.family, ", ".join(info.splits), info.licence, info.data)),
            info.kind,
        )
        for info in list_tasks()
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        typer.echo("  ".join([*cells, row[-1]]))


@app.command()
def show(
    task: Annotated[str, typer.Argument(help="Name of the task.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many problems.")] = 3,
    split: Split = "test",
    shots: Annotated[int, typer.Option(min=0, help="Worked examples before the problem.")] = 0,
    model: Annotated[str | None, typer.Option(help="Render with this model's chat template.")] = None,
    options: Options = None,
) -> None:
    """Rendered prompts, gold answers and graded examples of the first problems of a split."""
    from broadreach.config import TaskSettings
    from broadreach.tasks.grading import Grader
    from broadreach.tasks.registry import get_task

    chosen = get_task(TaskSettings(name=task, options=_options(options), shots=shots))
    problems = chosen.problems(split)
    typer.echo(f"{chosen.name}, split {split}: {len(problems)} problems, family {chosen.family}")
    if getattr(chosen, "private", False):
        _show_private(problems[:n])
        return
    render = _renderer(model)
    with Grader(chosen) as grader:
        for problem in problems[:n]:
            typer.echo(f"\n=== {problem.id} ===")
            typer.echo(render(chosen, problem, shots))
            typer.echo(f"--- gold: {problem.gold}")
            _show_graded(chosen, problem, grader)


@app.command()
def check(
    task: Annotated[str, typer.Argument(help="Name of the task, or all.")],
    split: Split = "test",
    workers: Annotated[int, typer.Option(min=1, help="Grading workers.")] = 2,
    options: Options = None,
) -> None:
    """Prove that every gold scores 1 and no near miss does, and report repeats and train/test overlaps."""
    from broadreach.config import TaskSettings, VerifySettings
    from broadreach.tasks.check import check_task
    from broadreach.tasks.registry import built_in_names, get_task

    failed = 0
    for name in built_in_names() if task == "all" else (task,):
        chosen = get_task(TaskSettings(name=name, options={} if task == "all" else _options(options)))
        used = _split_here(chosen, split) if task == "all" else split
        if used is None:
            typer.echo(f"{name}: skipped, no data here (see `broadreach tasks show {name}`)")
            continue
        result = check_task(chosen, used, VerifySettings(workers=workers))
        for line in (*_check_lines(result), *_in_process_lines(chosen, used), *_hygiene_lines(chosen)):
            typer.echo(line)
        failed += not result.passed
    if failed:
        raise typer.Exit(1)


def _options(items: list[str] | None) -> dict[str, Any]:
    """`name=value` items, values as TOML where they are TOML, else as text."""
    import tomllib

    values: dict[str, Any] = {}
    for item in items or []:
        name, separator, text = item.partition("=")
        if not separator:
            raise UserError(f"--set {item}: write it as name=value, for example --set variant=uft")
        try:
            values[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name.strip()] = text.strip()
    return values


def _renderer(model: str | None) -> Any:
    from broadreach.tasks.render import chat, rendered_text

    if model is None:
        return lambda task, problem, shots: "\n".join(
            f"[{turn['role']}] {turn['content']}" for turn in chat(task, problem, shots)
        )
    from transformers import AutoTokenizer

    from broadreach.models.locate import locate

    tokenizer = AutoTokenizer.from_pretrained(locate(model))
    return lambda task, problem, shots: rendered_text(tokenizer, chat(task, problem, shots))


def _show_graded(task: Task, problem: Problem, grader: Any) -> None:
    from broadreach.tasks.check import near_misses, solution
    from broadreach.types import Response

    right, misses = solution(task, problem), list(near_misses(task, problem))
    texts = list(dict.fromkeys([*([right] if right is not None else []), *misses[:2], *misses[-2:]]))
    scores = grader.grade([problem] * len(texts), [Response(text, (), "stop", 0) for text in texts])
    for text, score in zip(texts, scores, strict=True):
        shown = text if len(text) <= 100 else f"{text[:97]}..."
        typer.echo(f"    reward {score.reward:<4g} {shown!r}")


def _show_private(problems: list[Problem]) -> None:
    """Ids and hashes only: the licence forbids showing the items."""
    import hashlib

    typer.echo("This data set may not be shown; ids and hashes only.")
    for problem in problems:
        typer.echo(f"  {problem.id}  sha256 {hashlib.sha256(problem.question.encode()).hexdigest()[:16]}")


def _split_here(task: Task, split: str) -> str | None:
    """The split when its data are on this machine (generated tasks always have them)."""
    here = getattr(task, "is_local", None)
    if here is None or here(split):
        return split
    return "train" if split == "test" and here("train") and "test" not in getattr(task, "aliases", {}) else None


def _check_lines(result: Check) -> list[str]:
    verdict = "ok" if result.passed else "FAILED"
    right, refused = result.golds - len(result.failed_golds), result.near_misses - len(result.accepted_misses)
    lines = [
        f"{result.task} {result.split}: {verdict}, {right} of {result.problems} golds score 1, "
        f"{refused} of {result.near_misses} near misses refused "
        f"({result.seconds:.1f} s)"
    ]
    lines += [f"  gold of {identity}: {why}" for identity, why in result.failed_golds[:10]]
    lines += [f"  near miss of {identity} accepted: {text[:80]!r}" for identity, text in result.accepted_misses[:10]]
    return lines


def _hygiene_lines(task: Task) -> list[str]:
    from broadreach.tasks.hygiene import examine

    try:
        report: Hygiene = examine(task)[1]
    except UserError as error:
        return [f"  training problems not compared with the tests: {error}"]
    return [f"  {line}" for line in report.lines()]


def _in_process_lines(task: Task, split: str) -> list[str]:
    """The problems with tests that the candidate's own process judges, so that a program can fool them."""
    if task.family != "code":
        return []
    from broadreach.verify.code_tests import count_inside

    problems = task.problems(split)
    found = [problem.id for problem in problems if count_inside(problem.data)]
    shown = f": {', '.join(found[:10])}{', ...' if len(found) > 10 else ''}" if found else ""
    return [f"  {len(found)} of {len(problems)} problems have tests judged in-process{shown}"]
