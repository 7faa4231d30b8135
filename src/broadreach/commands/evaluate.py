"""`broadreach eval`: sample responses from a model or a run, grade them, and give Pass@K and Maj@K."""

from __future__ import annotations

from typing import Annotated

import typer


def evaluate(
    target: Annotated[str, typer.Argument(help="A run folder, a Hugging Face directory, `nano`, or a Hub id.")],
    task: Annotated[str | None, typer.Option("--task", help="Task (default: the run's own).")] = None,
    split: Annotated[str | None, typer.Option("--split", help="Split (default: test).")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Responses a problem (default: 32).")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="0 is greedy (default: 0.6).")] = None,
    max_new_tokens: Annotated[int | None, typer.Option("--max-new-tokens", help="Longest response.")] = None,
    problems: Annotated[int | None, typer.Option("--problems", help="Only the first so many problems.")] = None,
    shots: Annotated[int | None, typer.Option("--shots", help="Worked examples before each question.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Update of the run (default: base and last).")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of the sampling noise.")] = None,
    out: Annotated[str | None, typer.Option("--out", help="Folder of the sample stores.")] = None,
    overrides: Annotated[list[str] | None, typer.Option("--set", help="Any other setting of the run.")] = None,
) -> None:
    """Draw responses, grade them, and print Pass@1, Pass@K and Maj@K with 95 % bootstrap intervals over problems.

    A run is evaluated before and after training, and compared problem by problem. Stores are resumable.
    """
    from rich.console import Console

    from broadreach.commands.api import evaluate as run_evaluation
    from broadreach.commands.progress import problem_bar
    from broadreach.evaluation.evaluate import headline

    chosen = {
        "eval.split": split,
        "eval.samples": samples,
        "eval.temperature": temperature,
        "eval.max_new_tokens": max_new_tokens,
        "eval.problems": problems,
        "eval.seed": seed,
        "task.shots": shots,
    }
    settings = [f"{key}={value}" for key, value in chosen.items() if value is not None] + list(overrides or [])
    console = Console(highlight=False, soft_wrap=True)
    with problem_bar(console) as bar:
        results = run_evaluation(target, task, step=step, out=out, overrides=settings, progress=bar)
    for name, folder, summary in results.stores:
        console.print(f"{name:8} {headline(summary)}   {folder}".replace("[", "\\["))
        for warning in summary["warnings"]:
            console.print(f"[yellow]![/] {name}: {warning}")
    if results.comparison is not None:
        from broadreach.commands.evaluation_text import paired_lines

        for line in paired_lines(results.comparison):
            console.print(line.replace("[", "\\["))
