"""One evaluation from weights to metrics.json: render, sample, grade, summarise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadreach.config import EngineSettings, TaskSettings, VerifySettings
from broadreach.engines.select import build_engine
from broadreach.evaluation.sample import ProblemDone, sample
from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest
from broadreach.evaluation.summary import Json, summarise, write_json
from broadreach.evaluation.table import load
from broadreach.models.weights import load_centre, load_tokenizer, model_context_length
from broadreach.noise.update import digest
from broadreach.tasks.grading import Grader
from broadreach.tasks.instructions import instruction_hash
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import chat, render, rendered_text
from broadreach.types import Centre, UserError


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """What to ask, how to draw, and how to serve."""

    task: TaskSettings
    split: str
    samples: int
    temperature: float
    max_new_tokens: int
    problems: int | None
    """Only the first so many problems of the split."""
    seed: int
    dtype: str
    engine: EngineSettings
    verify: VerifySettings


def evaluate_weights(
    plan: EvaluationPlan,
    model_dir: Path,
    out: Path,
    centre: Centre | None = None,
    progress: ProblemDone | None = None,
) -> Json:
    """Evaluate `centre` (default: the weights in `model_dir`) into out/samples.jsonl and out/metrics.json.

    Goes on where an earlier call stopped; a finished store costs no model. UserError for settings that differ from the
    stored ones, missing data, or prompts that do not fit the context.
    """
    task = get_task(plan.task)
    problems = task.problems(plan.split)[: plan.problems]
    tokenizer = load_tokenizer(model_dir)
    prompts = {problem.id: render(tokenizer, task, problem, plan.task.shots) for problem in problems}
    _check_lengths(prompts, plan.max_new_tokens, model_context_length(model_dir))
    centre = load_centre(model_dir) if centre is None else centre
    header = StoreHeader(
        task=task.name,
        split=plan.split,
        model_digest=digest(centre),
        instruction_hash=instruction_hash(rendered_text(tokenizer, chat(task, problems[0], plan.task.shots))),
        temperature=plan.temperature,
        max_new_tokens=plan.max_new_tokens,
        samples=plan.samples,
        seed=plan.seed,
        problems=len(problems),
        problem_digest=problem_digest(problems),
        dtype=plan.dtype,
        private=bool(getattr(task, "private", False)),
    )
    path = out / "samples.jsonl"
    with SampleStore(path, header, [problem.id for problem in problems]) as store:
        if store.done < len(problems):
            engine = build_engine(plan.engine, model_dir, plan.dtype, "exact")
            engine.load(centre)
            with Grader(task, plan.verify) as grader:
                sample(engine, grader, store, problems, prompts, chunk=_chunk(plan), problem_done=progress)
    summary = summarise(load(path))
    write_json(summary, out / "metrics.json")
    return summary


def _chunk(plan: EvaluationPlan) -> int:
    return max(1, plan.engine.rows // plan.samples)


def _check_lengths(prompts: dict[str, tuple[int, ...]], new_tokens: int, context: int) -> None:
    for problem_id, prompt in prompts.items():
        if len(prompt) + new_tokens > context:
            raise UserError(
                f"problem {problem_id}: its prompt of {len(prompt)} tokens and {new_tokens} new ones do not fit the "
                f"model's context of {context}; lower --max-new-tokens to {context - len(prompt)} or less"
            )


def headline(summary: Json) -> str:
    """Pass@1, Pass@K and Maj@K at the largest K, with their intervals, in one line."""
    k = summary["samples"]
    parts = [_percent("Pass@1", summary["pass_at_1"])]
    if k > 1:
        parts.append(_percent(f"Pass@{k}", summary["pass_at_k"][k - 1]))
        parts.append(_percent(f"Maj@{k}", summary["maj_at_k"][k - 1]))
    parts.append(_percent("form", summary["format_rate"]))
    return "  ".join(parts)


def _percent(name: str, entry: dict[str, Any]) -> str:
    return f"{name} {entry['value']:.1%} [{entry['low']:.1%}, {entry['high']:.1%}]"
