"""Drawing responses for evaluation: problems in order, in chunks, graded while the next chunk generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from broadreach.engines.base import Engine, Progress
from broadreach.evaluation.store import SampleStore, StoreHeader, write_problems
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, Problem, Request, Response, Sampling, Score, UserError

ROWS = 1024
"""Responses a chunk aims at when the caller names no chunk."""

CENTRE = Perturbation(seed=0, step=0, sigma=0.0)
"""The weights as they are: evaluation perturbs nothing."""

ProblemDone: TypeAlias = Callable[[int, int], None]
"""Called with (problems stored, problems in all) whenever the store has grown."""


class Grader(Protocol):
    """What gives verdicts (`broadreach.tasks.grading.Grader`): submit returns at once, results wait."""

    def submit(self, problem: Problem, response: Response) -> Any:
        """Start grading one response; returns a handle."""

    def results(self, handles: Sequence[Any]) -> list[Score]:
        """The verdicts of these handles, in their order."""


def sample(
    engine: Engine,
    grader: Grader,
    store: SampleStore,
    problems: Sequence[Problem],
    prompts: Mapping[str, Sequence[int]],
    *,
    chunk: int | None = None,
    progress: Progress | None = None,
    problem_done: ProblemDone | None = None,
) -> None:
    """Draw the store's `samples` responses a problem under the centre (or, with weight noise, one from each member),
    grade them, and store whole problems.

    `store` is entered, and its header holds temperature, new tokens, samples and seed; `prompts` maps problem ids
    to rendered token ids. Stored problems are skipped; unless the task is private, questions and golds go to
    problems.jsonl beside the store. The sampling noise is keyed by problem and sample, and chunks start at fixed
    places of the problem list, so that a resumed run sees the same batches as an undisturbed one. UserError when a
    prompt is missing; whatever the engine or the store raises.
    """
    assert tuple(problem.id for problem in problems) == store.problem_ids, "store and problems differ"
    for problem in problems:
        if not prompts.get(problem.id):
            raise UserError(f"problem {problem.id} has no prompt: render every problem before sampling")
    if not store.header.private:
        write_problems(store.path, problems)
    if store.done == len(problems):
        return
    size = chunk or max(1, ROWS // store.header.samples)
    graded: tuple[Sequence[Problem], list[Response], list[Any]] | None = None
    for start in range(store.done // size * size, len(problems), size):
        part = problems[start : start + size]
        responses = _generate(engine, store, part, prompts, progress)
        owners = [problem for problem in part for _ in range(store.header.samples)]
        handles = [grader.submit(owner, response) for owner, response in zip(owners, responses, strict=True)]
        if graded is not None:
            _append(grader, store, *graded, problem_done)
        graded = part, responses, handles
    if graded is not None:
        _append(grader, store, *graded, problem_done)


def _generate(
    engine: Engine,
    store: SampleStore,
    part: Sequence[Problem],
    prompts: Mapping[str, Sequence[int]],
    progress: Progress | None,
) -> list[Response]:
    header = store.header
    sampling = Sampling(header.temperature, header.max_new_tokens, seed=header.seed)
    if header.noise_sigma > 0:
        return _generate_with_noise(engine, header, sampling, part, prompts, progress)
    requests = [
        Request(problem.id, tuple(prompts[problem.id]), sample=index)
        for problem in part
        for index in range(header.samples)
    ]
    return engine.generate(requests, [CENTRE_MEMBER], CENTRE, sampling, progress=progress)[0]


def _generate_with_noise(
    engine: Engine,
    header: StoreHeader,
    sampling: Sampling,
    part: Sequence[Problem],
    prompts: Mapping[str, Sequence[int]],
    progress: Progress | None,
) -> list[Response]:
    """Response j of every problem from member j; no update has number 0, so training never sees these directions."""
    members = [Member(index=j, direction=j, sign=1) for j in range(header.samples)]
    requests = [Request(problem.id, tuple(prompts[problem.id])) for problem in part]
    perturbation = Perturbation(header.seed, 0, header.noise_sigma)
    answers = engine.generate(requests, members, perturbation, sampling, progress=progress)
    return [answer[position] for position in range(len(part)) for answer in answers]


def _append(
    grader: Grader,
    store: SampleStore,
    part: Sequence[Problem],
    responses: list[Response],
    handles: list[Any],
    problem_done: ProblemDone | None,
) -> None:
    """Store the problems of a chunk; those that a killed run had stored already are left as they are."""
    scores = grader.results(handles)
    samples = store.header.samples
    for index, problem in enumerate(part):
        if problem.id == store.problem_ids[store.done]:
            rows = slice(index * samples, (index + 1) * samples)
            store.append(problem.id, responses[rows], scores[rows])
    if problem_done is not None:
        problem_done(store.done, len(store.problem_ids))
