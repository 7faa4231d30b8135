"""A task proves itself: every gold scores 1 by the path of a model's response, and no near miss does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from broadreach.config import VerifySettings
from broadreach.tasks import golds
from broadreach.tasks.base import Task
from broadreach.tasks.grading import Grader
from broadreach.types import Problem, Response, Score

NEAR_MISS_PROBLEMS = 200
"""Near misses are tried for so many problems of a split, evenly spread."""
NEAR_MISS_PROGRAMS = 25
"""The same for code, where each costs a sandbox."""


@dataclass(frozen=True, slots=True)
class Check:
    """What the check of one split found."""

    task: str
    split: str
    problems: int
    golds: int
    """Problems with a gold response (Countdown without a solution, or code without a program, have none)."""
    failed_golds: tuple[tuple[str, str], ...]
    """(problem id, why) of golds that did not score 1."""
    near_misses: int
    accepted_misses: tuple[tuple[str, str], ...]
    """(problem id, response) of near misses that scored 1."""
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every problem has a gold response that scores 1, and every near miss was refused."""
        return self.golds == self.problems and not self.failed_golds and not self.accepted_misses


def check_task(
    task: Task,
    split: str = "test",
    settings: VerifySettings | None = None,
    near_miss_problems: int | None = None,
) -> Check:
    """Grade every gold of a split and the near misses of some problems; UserError when data are missing."""
    start = time.perf_counter()
    problems = task.problems(split)
    right = [(problem, text) for problem in problems if (text := solution(task, problem)) is not None]
    tried = near_miss_problems
    if tried is None:
        tried = NEAR_MISS_PROGRAMS if task.family == "code" else NEAR_MISS_PROBLEMS
    step = max(1, len(problems) // max(1, tried))
    wrong = [(problem, text) for problem in problems[::step][:tried] for text in near_misses(task, problem)]
    with Grader(task, settings) as grader:
        scores = _grade(grader, [*right, *wrong])
    failed = [
        (problem.id, _why(score)) for (problem, _), score in zip(right, scores, strict=False) if score.reward != 1
    ]
    accepted = [
        (problem.id, text)
        for (problem, text), score in zip(wrong, scores[len(right) :], strict=True)
        if score.correct or score.reward == 1
    ]
    return Check(
        task=task.name,
        split=split,
        problems=len(problems),
        golds=len(right),
        failed_golds=tuple(failed),
        near_misses=len(wrong),
        accepted_misses=tuple(accepted),
        seconds=time.perf_counter() - start,
    )


def solution(task: Task, problem: Problem) -> str | None:
    """A response that must score 1: the task's own `solution(problem)` where it has one, else its family's."""
    own = getattr(task, "solution", None)
    found: str | None = own(problem) if own is not None else golds.solution(task.family, problem)
    return found


def near_misses(task: Task, problem: Problem) -> Sequence[str]:
    """Responses that must not score 1: the task's own `near_misses(problem)` where it has them, else its family's."""
    own = getattr(task, "near_misses", None)
    found: Sequence[str] = own(problem) if own is not None else golds.near_misses(task.family, problem)
    return found


def _grade(grader: Grader, pairs: Sequence[tuple[Problem, str]]) -> list[Score]:
    return grader.grade([problem for problem, _ in pairs], [Response(text, (), "stop", 0) for _, text in pairs])


def _why(score: Score) -> str:
    if score.error is not None:
        return f"error: {score.error}"
    if score.timed_out:
        return "timeout"
    return "wrong verdict" if score.format_ok else "format failure"
