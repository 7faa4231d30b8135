"""TRL's reward-function signature works unchanged; its mistakes are one line that names the place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from broadreach.config import TaskSettings
from broadreach.tasks.base import Task
from broadreach.tasks.grading import Grader, mean_reward
from broadreach.tasks.registry import get_task
from broadreach.tasks.reward_function import SKIPPED, RewardTask, load_function
from broadreach.types import Response, Score, UserError

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _module_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's module lies in the working directory."""
    monkeypatch.chdir(HERE)
    import tasks_rewards

    tasks_rewards.CALLS.clear()


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    data = [
        {"prompt": f"say {word}", "answer": word, "level": index} for index, word in enumerate(("one", "two", "three"))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in data))
    return str(path)


def _task(path: str, function: str, **options: Any) -> Task:
    options = {"path": path, "test_fraction": 0, **options}
    return get_task(TaskSettings(name="jsonl", options=options, reward=f"tasks_rewards:{function}"))


def _grade(task: Task, texts: list[str]) -> list[Score]:
    with Grader(task) as grader:
        return grader.grade(task.problems("train"), [Response(text, (1, 2), "stop", 3) for text in texts])


def test_plain_prompts_give_plain_strings_and_the_columns_as_lists(rows: str) -> None:
    import tasks_rewards

    scores = _grade(_task(rows, "plain"), ["a", "bb", ""])
    assert [score.reward for score in scores] == [1.0, 2.0, 0.0]
    assert [score.correct for score in scores] == [True, False, False]
    assert len(tasks_rewards.CALLS) == 1
    call = tasks_rewards.CALLS[0]
    assert call["prompts"] == ["say one", "say two", "say three"]
    assert call["completions"] == ["a", "bb", ""]
    assert call["completion_ids"] == [[1, 2]] * 3
    assert call["answer"] == ["one", "two", "three"]
    assert call["level"] == [0, 1, 2]
    assert "prompt" not in call


def test_chat_tasks_give_message_lists() -> None:
    import tasks_rewards

    task = get_task(TaskSettings(name="svamp", reward="tasks_rewards:conversational"))
    problem = task.worked_examples()[0][0]
    scores = [task.score(problem, f"it is {problem.gold}"), task.score(problem, "no idea")]
    assert [score.reward for score in scores] == [1.0, 0.0]
    call = tasks_rewards.CALLS[0]
    assert call["completions"] == [[{"role": "assistant", "content": f"it is {problem.gold}"}]]
    assert call["prompts"] == [task.messages(problem)]
    assert call["question"] == [problem.question]


def test_the_style_can_be_forced(rows: str) -> None:
    import tasks_rewards

    _grade(_task(rows, "conversational", reward_style="conversational"), ["a", "b", "c"])
    assert tasks_rewards.CALLS[0]["completions"][0] == [{"role": "assistant", "content": "a"}]
    with pytest.raises(UserError, match="reward_style = 'chat'"):
        _task(rows, "plain", reward_style="chat")


@pytest.mark.parametrize(
    ("function", "reward"), [("slow", 1.0), ("judge", 0.25), ("narrow", 0.0), ("as_array", 1.0), ("logs", 0.5)]
)
def test_sync_async_and_narrow_signatures(rows: str, function: str, reward: float) -> None:
    assert [score.reward for score in _grade(_task(rows, function), ["a", "b", "c"])] == [reward] * 3


def test_async_rewards_work_inside_a_running_event_loop(rows: str) -> None:
    """As in a notebook."""
    import asyncio

    async def inside() -> list[Score]:
        return _grade(_task(rows, "slow"), ["a", "b", "c"])

    assert [score.reward for score in asyncio.run(inside())] == [1.0] * 3


def test_metrics_and_the_step_reach_the_function(rows: str) -> None:
    task = _task(rows, "logs")
    assert isinstance(task, RewardTask)
    task.state.global_step = 7
    _grade(task, ["a", "b", "c"])
    assert task.metrics == {"step": [7.0]}


def test_none_is_skipped_counted_and_left_out_of_the_mean(rows: str) -> None:
    task = _task(rows, "sometimes")
    with Grader(task) as grader:
        scores = grader.grade(task.problems("train"), [Response("x", (), "stop", 0)] * 3)
    assert [score.error for score in scores] == [None, SKIPPED, None]
    assert (grader.counts.graded, grader.counts.skipped, grader.errors, grader.timeouts) == (3, 1, 0, 0)
    assert mean_reward(scores) == 1.0
    assert mean_reward([scores[1]]) is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nan", r"tasks_rewards:nan returned nan for problem train-2; rewards must be finite"),
        ("infinite", "returned inf for problem train-1"),
        ("words", "returned 'good' for problem train-1"),
        ("short", "returned 2 values for 3 completions; return a list with one number or None for each"),
        ("single", "returned a float for 3 completions"),
        ("broken", r"tasks_rewards:broken raised KeyError: 'answers' \(batch of 3, first problem train-1\)"),
    ],
)
def test_mistakes_of_the_function_are_named(rows: str, function: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        _grade(_task(rows, function), ["a", "b", "c"])


def test_no_gold_is_needed_with_a_reward_function(tmp_path: Path) -> None:
    path = tmp_path / "bare.jsonl"
    path.write_text('{"prompt": "p"}\n')
    assert _grade(_task(str(path), "plain"), ["abc"])[0].reward == 3.0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("tasks_rewards", "write it as package.module:function"),
        ("tasks_rewards:plian", "has no function plian; did you mean plain?"),
        ("tasks_rewards:not_a_function", "is a int, not a function"),
        ("no_such_module_here:f", "no module no_such_module_here in .*; start in the directory that holds it"),
        ("tasks_needs_missing:f", "needs the module surely_not_installed, which is not installed"),
        ("tasks_raises_on_import:f", r"importing tasks_raises_on_import failed \(RuntimeError: boom\)"),
    ],
)
def test_import_paths_that_lead_nowhere(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks_needs_missing.py").write_text("import surely_not_installed\n")
    (tmp_path / "tasks_raises_on_import.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match=message) as caught:
        load_function(path)
    assert "\n" not in str(caught.value)
