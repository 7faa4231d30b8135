"""What every training method prepares first: the task, its problems, and their rendered prompts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadreach.config import Config
from broadreach.models.locate import locate
from broadreach.models.weights import load_tokenizer, model_context_length
from broadreach.tasks.base import Task
from broadreach.tasks.batches import Batches
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


def prepare(config: Config) -> Prepared:
    """Load model files, problems and prompts; every mistake in them is a UserError before anything is written."""
    model_dir = locate(config.model.path)
    tokenizer = load_tokenizer(model_dir)
    task = get_task(config.task)
    problems = task.problems("train")[: config.task.max_train]
    requests = [Request(problem.id, render(tokenizer, task, problem, config.task.shots)) for problem in problems]
    problems, requests, notes = _fitting(config, problems, requests, model_context_length(model_dir))
    train = config.train
    seed = config.seed if train.data_seed is None else train.data_seed
    batches = Batches(len(problems), train.batch, seed, train.shuffle, train.keep_tail, train.skip_batches)
    total = train.updates if train.updates is not None else train.epochs * batches.per_epoch
    return Prepared(model_dir, tokenizer, task, problems, requests, batches, total, tuple(notes))


def _fitting(
    config: Config, problems: list[Problem], requests: list[Request], context: int
) -> tuple[list[Problem], list[Request], list[str]]:
    """Leave out prompts over `train.max_prompt_tokens`; UserError when one does not fit the model's context."""
    limit = config.train.max_prompt_tokens
    notes = []
    if limit is not None:
        kept = [i for i, request in enumerate(requests) if len(request.prompt) <= limit]
        if len(kept) < len(requests):
            notes.append(f"left out {len(requests) - len(kept)} of {len(requests)} prompts longer than {limit} tokens")
        problems, requests = [problems[i] for i in kept], [requests[i] for i in kept]
    for request in requests:
        needed = len(request.prompt) + config.sampling.max_new_tokens
        if needed > context:
            raise UserError(
                f"problem {request.problem_id}: its prompt of {len(request.prompt)} tokens and "
                f"{config.sampling.max_new_tokens} new ones need {needed}, the model's context holds {context}; "
                f"set train.max_prompt_tokens = {context - config.sampling.max_new_tokens} to leave such problems out"
            )
    if not problems:
        raise UserError(f"task {config.task.name}: no training problem is left; raise train.max_prompt_tokens")
    return problems, requests, notes
