"""The grader: order, counters, what runs where, and what a failing verifier does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from broadreach.config import TaskSettings, VerifySettings
from broadreach.tasks.grading import Counts, Grader
from broadreach.tasks.registry import get_task
from broadreach.types import FinishReason, Message, Problem, Response, Score, UserError


def _response(text: str, reason: FinishReason = "stop") -> Response:
    return Response(text, (), reason, 0)


GSM = [Problem(f"p{i}", "q", str(i), {}) for i in range(6)]


def test_verdicts_come_back_in_the_order_asked_whatever_was_submitted_first() -> None:
    task = get_task(TaskSettings(name="gsm8k"))
    texts = ["\\boxed{0}", "\\boxed{9}", "none", "\\boxed{\\frac{6}{2}}", "\\boxed{2^2}", "\\boxed{5.0}"]
    with Grader(task) as grader:
        handles = [grader.submit(problem, _response(text)) for problem, text in zip(GSM, texts, strict=True)]
        backwards = grader.results(handles[:1:-1])
        rest = grader.results(handles[:2])
    assert [score.reward for score in backwards] == [1, 1, 1, 0]
    assert [score.reward for score in rest] == [1, 0.1]
    assert (grader.counts.graded, grader.counts.correct) == (6, 4)


def test_a_hostile_expression_is_an_isolated_wrong_verdict_within_the_deadline() -> None:
    task = get_task(TaskSettings(name="math500"))
    problem = Problem("p", "q", "x+1")
    texts = ["\\boxed{x+1}", "\\boxed{9^{9^{9^{9^{9}}}}+x}", "\\boxed{1+x}"]
    start = time.perf_counter()
    with Grader(task, VerifySettings(deadline=2.0, workers=1)) as grader:
        scores = grader.grade([problem] * 3, [_response(text) for text in texts])
    assert [score.reward for score in scores] == [1, 0.1, 1]
    assert time.perf_counter() - start < 20


def test_choice_and_countdown_need_no_worker() -> None:
    """2,048 verdicts of a cheap family in well under a second of pool-free work."""
    task = get_task(TaskSettings(name="countdown"))
    problem = Problem("p", "q", "56", {"numbers": [3, 5, 7], "target": 56})
    start = time.perf_counter()
    with Grader(task) as grader:
        scores = grader.grade([problem] * 2048, [_response("<answer>(3 + 5) * 7</answer>")] * 2048)
    assert all(score.correct for score in scores)
    assert time.perf_counter() - start < 2


@dataclass(frozen=True)
class OwnVerifier:
    """A task with a verifier of its own, one that fails on some text."""

    name: str = "own"
    family: str = "custom"

    def problems(self, split: str) -> list[Problem]:
        return GSM

    def messages(self, problem: Problem) -> list[Message]:
        return [{"role": "user", "content": problem.question}]

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        return ()

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        if text == "crash":
            raise ZeroDivisionError("by the verifier")
        if text == "user":
            raise UserError("the user's mistake")
        return Score(1.0, True, True, error=None, timed_out=text == "slow")


def test_a_verifier_that_fails_is_counted_apart_and_touches_no_other_sample() -> None:
    with Grader(OwnVerifier()) as grader:
        scores = grader.grade(GSM[:3], [_response(text) for text in ("fine", "crash", "slow")])
    assert [score.reward for score in scores] == [1, 0, 1]
    assert scores[1].error == "ZeroDivisionError: by the verifier"
    assert (grader.errors, grader.timeouts) == (1, 1)
    with Grader(OwnVerifier()) as grader, pytest.raises(UserError, match="the user's mistake"):
        grader.grade(GSM[:1], [_response("user")])


def test_counts_add_up() -> None:
    counts = Counts()
    for score in (
        Score(1, True, True),
        Score(0.1, False, True),
        Score(0, False, False, error="x"),
        Score(0, False, True, timed_out=True),
    ):
        counts = counts.add(score)
    assert counts == Counts(graded=4, correct=1, errors=1, timeouts=1, skipped=0)


def test_programs_are_refused_at_once_where_there_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    task = get_task(TaskSettings(name="mbpp"))
    with pytest.raises(UserError, match="bubblewrap is missing: install it"), Grader(task):
        pass
    with Grader(task, VerifySettings(allow_unsandboxed=True)) as grader:
        assert grader.sandbox == "unsandboxed"


@pytest.mark.needs_bubblewrap
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_program_is_graded_in_the_sandbox() -> None:
    task = get_task(TaskSettings(name="mbpp"))
    problem = Problem("p", "q", "", {"prompt_tests": ["assert f(2) == 4"]})
    with Grader(task) as grader:
        assert grader.sandbox == "bubblewrap"
        texts = ["```python\ndef f(x): return x * x\n```", "```python\ndef f(x): return x\n```", "def f(x): return 4"]
        scores = grader.grade([problem] * 3, [_response(text) for text in texts])
    assert [score.reward for score in scores] == [1, 0.1, 0]
