"""What every training method prepares first: the task, its problems, and their rendered prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadreach.config import Config
from broadreach.models.locate import locate
from broadreach.models.weights import load_tokenizer, model_context_length
from broadreach.tasks.base import Task
from broadreach.tasks.batches import Batches
from broadreach.tasks.hygiene import training_problems
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import render
from broadreach.types import Problem, Request, UserError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task ready to be trained on."""

    model_dir: Path
    tokenizer: Any
    task: Task
    problems: list[Problem]
    requests: list[Request]
    """One per problem, in the same order."""
    batches: Batches
    total: int
    """Updates of the whole run."""
    notes: tuple[str, ...]
    """What data hygiene found, in words."""


def prepare(config: Config) -> Prepared:
    """Load model files, problems and prompts; every mistake in them is a UserError before anything is written."""
    model_dir = locate(config.model.path)
    tokenizer = load_tokenizer(model_dir)
    task = get_task(config.task)
    prompts: dict[str, tuple[int, ...]] = {}

    def lengths(problems: Sequence[Problem]) -> list[int]:
        prompts.update((problem.id, render(tokenizer, task, problem, config.task.shots)) for problem in problems)
        return [len(prompts[problem.id]) for problem in problems]

    problems, report = training_problems(task, config.task, lengths, config.train.max_prompt_tokens)
    if not prompts:
        lengths(problems)
    requests = [Request(problem.id, prompts[problem.id]) for problem in problems]
    _check_context(requests, config.sampling.max_new_tokens, model_context_length(model_dir))
    train = config.train
    seed = config.seed if train.data_seed is None else train.data_seed
    batches = Batches(len(problems), train.batch, seed, train.shuffle, train.keep_tail, train.skip_batches)
    total = train.updates if train.updates is not None else train.epochs * batches.per_epoch
    return Prepared(model_dir, tokenizer, task, problems, requests, batches, total, tuple(report.lines()))


def _check_context(requests: list[Request], new_tokens: int, context: int) -> None:
    """UserError naming the first problem whose prompt and response do not fit the model's context."""
    for request in requests:
        needed = len(request.prompt) + new_tokens
        if needed > context:
            raise UserError(
                f"problem {request.problem_id}: its prompt of {len(request.prompt)} tokens and {new_tokens} new ones "
                f"need {needed}, the model's context holds {context}; "
                f"set train.max_prompt_tokens = {max(1, context - new_tokens)} to leave such problems out"
            )
