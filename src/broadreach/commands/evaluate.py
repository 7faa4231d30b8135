"""`broadreach eval`: sample responses from a model or a run, grade them, and give Pass@K and Maj@K."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.commands.evaluation import BaselineSettings


def evaluate(
    target: Annotated[str, typer.Argument(help="A run folder, a Hugging Face directory, `nano`, or a Hub id.")],
    task: Annotated[str | None, typer.Option("--task", help="Task (default: the run's own).")] = None,
    suite: Annotated[str | None, typer.Option("--suite", help="Several tasks: easy, hard or nano.")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Split (default: test).")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Responses a problem (default: 32).")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="0 is greedy (default: 0.6).")] = None,
    max_new_tokens: Annotated[int | None, typer.Option("--max-new-tokens", help="Longest response.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Only the first so many problems.")] = None,
    shots: Annotated[int | None, typer.Option("--shots", help="Worked examples before each question.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Update of the run (default: base and last).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the sampling noise.")] = None,
    greedy: Annotated[
        bool | None, typer.Option("--greedy/--no-greedy", help="One greedy response besides (default with --suite).")
    ] = None,
    entropy: Annotated[
        bool | None, typer.Option("--entropy/--no-entropy", help="Token entropy besides (default with --suite).")
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="The base at other temperatures, and with weight noise.")
    ] = False,
    temperatures: Annotated[
        str | None, typer.Option("--temperatures", help="Of the baselines (default: 0.3,1.0,1.3).")
    ] = None,
    noise_sigma: Annotated[
        float | None, typer.Option("--noise-sigma", help="Of the weight noise (default: es.sigma of the run).")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the sample stores.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for logs.")] = False,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting of the run.")] = None,
) -> None:
    """Draw responses, grade them, and print Pass@1, Pass@K and Maj@K with 95 % bootstrap intervals over problems.

    A run is evaluated before and after training, and compared problem by problem. Stores are resumable.
    """
    from rich.console import Console

    from broadreach.commands.evaluation import evaluate as on_task
    from broadreach.commands.evaluation import evaluate_suite
    from broadreach.commands.evaluation_text import result_lines, suite_lines
    from broadreach.commands.progress import plain, problem_bar, say_json

    chosen = {
        "eval.split": split,
        "eval.samples": samples,
        "eval.temperature": temperature,
        "eval.max_new_tokens": max_new_tokens,
        "eval.problems": problems,
        "eval.seed": seed,
        "eval.greedy": None if greedy is None else str(greedy).lower(),
        "eval.entropy": None if entropy is None else str(entropy).lower(),
        "task.shots": shots,
    }
    settings = [f"{key}={value}" for key, value in chosen.items() if value is not None] + list(overrides or [])
    if suite is not None and (task is not None or split is not None):
        raise UserError("--suite names the tasks and their splits: leave --task and --split out")
    wanted = _baselines(baselines, temperatures, noise_sigma)
    console = Console(highlight=False, soft_wrap=True)
    with problem_bar(console, as_json) as bar:
        if suite is not None:
            lines = suite_lines(
                evaluate_suite(target, suite, step=step, out=out, overrides=settings, baselines=wanted, progress=bar)
            )
        else:
            lines = result_lines(
                on_task(target, task, step=step, out=out, overrides=settings, baselines=wanted, progress=bar)
            )
    for line in lines:
        if as_json:
            say_json({"event": "warning" if line.startswith("! ") else "note", "text": line.removeprefix("! ")})
            continue
        text = plain(line)
        console.print(f"[yellow]![/]{text[1:]}" if text.startswith("! ") else text)


def _baselines(asked: bool, temperatures: str | None, noise_sigma: float | None) -> BaselineSettings | None:
    from broadreach.commands.evaluation import BaselineSettings
    from broadreach.commands.lists import numbers
    from broadreach.evaluation.baselines import TEMPERATURES

    if not asked:
        if temperatures is not None or noise_sigma is not None:
            raise UserError("--temperatures and --noise-sigma belong to --baselines: add it")
        return None
    values = TEMPERATURES if temperatures is None else numbers(temperatures, "--temperatures")
    return BaselineSettings(values, noise_sigma)
