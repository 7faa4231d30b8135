"""Verdicts while generation goes on: cheap families at once, the others in a pool of killable workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from broadreach.config import VerifySettings
from broadreach.tasks.base import Task
from broadreach.tasks.reward_function import SKIPPED
from broadreach.types import Problem, Response, Score, UserError
from broadreach.verify.families import FAMILIES
from broadreach.verify.grading import Item

if TYPE_CHECKING:
    from broadreach.verify.pool import GradingPool, Handle


@runtime_checkable
class BatchTask(Protocol):
    """A task that grades many responses in one call (a user's reward function)."""

    def score_batch(self, problems: Sequence[Problem], responses: Sequence[Response]) -> list[Score]:
        """One score a response, in order."""


@runtime_checkable
class SessionTask(Protocol):
    """A task whose batches need a process of their own while a Grader is open (reasoning-gym)."""

    def session(self, settings: VerifySettings) -> AbstractContextManager[BatchTask]:
        """What grades batches until the context ends."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a grader has done so far; errors and timeouts are apart from wrong answers."""

    graded: int = 0
    correct: int = 0
    errors: int = 0
    timeouts: int = 0
    skipped: int = 0

    def add(self, score: Score) -> Counts:
        """The counts with one more verdict."""
        skipped = score.error == SKIPPED
        return Counts(
            graded=self.graded + 1,
            correct=self.correct + score.correct,
            errors=self.errors + (score.error is not None and not score.timed_out and not skipped),
            timeouts=self.timeouts + score.timed_out,
            skipped=self.skipped + skipped,
        )


def mean_reward(scores: Sequence[Score]) -> float | None:
    """Mean reward over the responses that have one; None when every response was skipped."""
    kept = [score.reward for score in scores if score.error != SKIPPED]
    return sum(kept) / len(kept) if kept else None


class Grader:
    """Grades responses while generation goes on; `with Grader(task, settings) as grader`.

    `submit` returns at once with a handle; `results` waits. A verifier failure or a timeout is an `error` on its own
    score. A user's reward function is called once for all responses of one `results` call; its mistakes (wrong number
    of values, NaN) are UserErrors.
    """

    def __init__(self, task: Task, settings: VerifySettings | None = None) -> None:
        self.task = task
        self.settings = settings or VerifySettings()
        self.counts = Counts()
        self.sandbox: str | None = None
        """How model-written programs run (for the report): `bubblewrap` or `unsandboxed`; None when none do."""
        self._stack = ExitStack()
        self._pool: GradingPool | None = None
        self._batch: BatchTask | None = None
        self._waiting: dict[int, tuple[Problem, Response]] = {}
        self._pooled: dict[int, Handle] = {}
        self._done: dict[int, Score] = {}
        self._next = 0

    def __enter__(self) -> Grader:
        if isinstance(self.task, BatchTask):
            self._batch = self.task
        elif self.task.family in FAMILIES:
            self._pool = self._stack.enter_context(self._open_pool())
        elif isinstance(self.task, SessionTask):
            self._batch = self._stack.enter_context(self.task.session(self.settings))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._pool = self._batch = None

    def submit(self, problem: Problem, response: Response) -> int:
        """Start grading one response; the handle is for `results`."""
        handle = self._next
        self._next += 1
        if self._batch is not None:
            self._waiting[handle] = (problem, response)
        elif self._pool is not None:
            item = Item(self.task.family, response.text, problem.gold, problem.data, response.finish_reason)
            self._pooled[handle] = self._pool.submit(item)
        else:
            self._done[handle] = _own_score(self.task, problem, response)
        return handle

    def results(self, handles: Iterable[int]) -> list[Score]:
        """The verdicts of these handles, in their order; each handle can be asked for once."""
        handles = list(handles)
        self._finish_batch([handle for handle in handles if handle in self._waiting])
        pooled = [handle for handle in handles if handle in self._pooled]
        if pooled:
            assert self._pool is not None
            scores = self._pool.results([self._pooled.pop(handle) for handle in pooled])
            self._done.update(zip(pooled, scores, strict=True))
        out = [self._done.pop(handle) for handle in handles]
        for score in out:
            self.counts = self.counts.add(score)
        return out

    def grade(self, problems: Sequence[Problem], responses: Sequence[Response]) -> list[Score]:
        """Submit and wait: one verdict a response, in order."""
        return self.results([self.submit(p, r) for p, r in zip(problems, responses, strict=True)])

    @property
    def errors(self) -> int:
        """Responses whose verifier failed (timeouts and skipped ones not included)."""
        return self.counts.errors

    @property
    def timeouts(self) -> int:
        """Responses whose verdict took longer than the deadline."""
        return self.counts.timeouts

    def _open_pool(self) -> GradingPool:
        from broadreach.verify.pool import GradingPool
        from broadreach.verify.sandbox import find_sandbox

        if self.task.family == "code":
            self.sandbox = find_sandbox(self.settings.allow_unsandboxed).mode
        return GradingPool(
            workers=self.settings.workers,
            deadline=self.settings.deadline,
            memory=int(self.settings.memory_gb * 1024**3),
            allow_unsandboxed=self.settings.allow_unsandboxed,
        )

    def _finish_batch(self, handles: list[int]) -> None:
        if not handles:
            return
        assert self._batch is not None
        pairs = [self._waiting.pop(handle) for handle in handles]
        scores = self._batch.score_batch([problem for problem, _ in pairs], [response for _, response in pairs])
        self._done.update(zip(handles, scores, strict=True))


def _own_score(task: Task, problem: Problem, response: Response) -> Score:
    """The score of a task with a verifier of its own, in this process; what it raises becomes an error."""
    try:
        return task.score(problem, response.text, response.finish_reason)
    except UserError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Score(reward=0.0, correct=False, format_ok=False, error=reason)
