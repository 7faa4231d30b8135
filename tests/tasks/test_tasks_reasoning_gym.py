"""reasoning-gym generators as tasks; their scorers run in a killable, sandboxed child and nowhere else."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from broadreach.config import TaskSettings, VerifySettings
from broadreach.tasks.check import check_task
from broadreach.tasks.grading import Grader
from broadreach.tasks.registry import get_task
from broadreach.types import Problem, Response, UserError

pytest.importorskip("reasoning_gym")
SMALL = {"train_size": 30, "test_size": 6}

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def _answer(text: str) -> Response:
    return Response(f"<answer>{text}</answer>", (), "stop", 0)


def test_generated_splits_are_disjoint_and_the_same_again() -> None:
    settings = TaskSettings(name="reasoning_gym:chain_sum", options={**SMALL, "max_terms": 3, "seed": 5})
    task = get_task(settings)
    train, test = task.problems("train"), task.problems("test")
    assert len(test) == 6
    assert not {problem.question for problem in train} & {problem.question for problem in test}
    assert get_task(settings).problems("train") == train
    assert "<answer>" in task.messages(test[0])[0]["content"]
    with pytest.raises(UserError, match="splits: train, test"):
        task.problems("dev")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("countdwn", {}, "did you mean reasoning_gym:countdown"),
        ("nosuch", {}, r"no generator .nosuch.; its \d+ generators: .*chain_sum"),
        ("chain_sum", {"max_term": 3}, "no option 'max_term'.*did you mean max_terms"),
        ("chain_sum", {"min_terms": 9, "max_terms": 2}, "the generator refuses its options .*max_terms must be"),
    ],
)
def test_bad_names_and_options(name: str, options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        get_task(TaskSettings(name=f"reasoning_gym:{name}", options=options)).problems("test")


@pytest.mark.parametrize("name", ["countdown", "puzzle24"])
def test_countdown_is_graded_by_our_own_rules(name: str) -> None:
    """The generators' own scorers pay for these (verifiers.md, row 54)."""
    task = get_task(TaskSettings(name=f"reasoning_gym:{name}", options=SMALL))
    assert task.family == "countdown"
    assert check_task(task, "test").passed


def test_forbidden_arithmetic_is_refused() -> None:
    task = get_task(TaskSettings(name="reasoning_gym:countdown", options=SMALL))
    cases = [([5, 2], 122, "5!+2"), ([4, 5, 2], 9, "sqrt(4)+5+2"), ([2, 5, 4], 10, "2.5*4"), ([7, 2, 1], 4, "7//2+1")]
    for numbers, target, text in cases:
        problem = Problem("p", "q", str(target), {"numbers": numbers, "target": target})
        assert not task.score(problem, f"<answer>{text}</answer>").correct, text


@needs_sandbox
@pytest.mark.needs_bubblewrap
@pytest.mark.slow
def test_golds_score_one_in_the_sandbox() -> None:
    for name in ("chain_sum", "polynomial_multiplication", "spell_backward", "knights_knaves"):
        result = check_task(get_task(TaskSettings(name=f"reasoning_gym:{name}", options=SMALL)), "test")
        assert result.passed, result


@needs_sandbox
@pytest.mark.needs_bubblewrap
@pytest.mark.slow
def test_hostile_answers_run_nowhere_and_cost_no_more_than_their_deadline(tmp_path: Path) -> None:
    """This scorer evaluates the answer; all of it stays inside, and the next answer is graded right."""
    task = get_task(TaskSettings(name="reasoning_gym:polynomial_multiplication", options=SMALL))
    problem = task.problems("test")[0]
    mark, deadline = tmp_path / "mark", 2.0
    hostile = [
        f"__import__('os').system('touch {mark}')",
        f"open('{mark}', 'w')",
        "9**9**9**9**9",
        "__import__('time').sleep(1000)",
        "__import__('os').kill(__import__('os').getppid(), 9)",
        "__import__('os')._exit(0)",
        "__import__('subprocess').Popen(['sleep', '987'], start_new_session=True)",
        "bytearray(10**11)",
        "(" * 3000,
    ]
    with Grader(task, VerifySettings(deadline=deadline)) as grader:
        assert grader.grade([problem], [_answer(problem.gold)])[0].reward == 1
        for text in hostile:
            start = time.perf_counter()
            score = grader.grade([problem], [_answer(text)])[0]
            assert (score.reward, score.correct) == (0.1, False), text
            assert time.perf_counter() - start < deadline + 8, text
            after = grader.grade([problem], [_answer(problem.gold)])[0]
            assert (after.reward, after.error) == (1, None), text
        assert grader.timeouts >= 2
    assert not mark.exists()
    assert not _running("sleep 987")


def _running(command: str) -> bool:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if line == command:
                return True
    return False


@pytest.mark.slow
def test_every_generator_makes_problems() -> None:
    """All 106 generators; `composite` needs data sets to compose, and five give no answer of their own."""
    from reasoning_gym.factory import DATASETS

    without_answer = set()
    for name in sorted(set(DATASETS) - {"composite"}):
        task = get_task(TaskSettings(name=f"reasoning_gym:{name}", options={"train_size": 1, "test_size": 1}))
        problem = task.problems("test")[0]
        assert problem.question.strip()
        if not problem.gold:
            without_answer.add(name)
    assert without_answer == {"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
    assert os.getpid()
