"""Rewards from outside: any function with TRL's reward-function signature, by import path, over any task's prompts.

Contract (TRL 1.16, GRPOTrainer):
`f(prompts, completions, completion_ids, **columns, trainer_state, log_extra, log_metric)` returns one number or None
a completion; it may be a coroutine. Chat prompts give `[{"role": "assistant", ...}]` completions, plain string prompts
give strings.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import inspect
import math
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from broadreach.tasks.base import Task
from broadreach.types import FinishReason, Message, Problem, Response, Score, UserError

SKIPPED = "skipped: the reward function returned None"
"""`Score.error` of a response without reward: it is counted, and left out of means (grading.mean_reward)."""

STYLES = ("auto", "plain", "conversational")


@dataclass
class TrainerState:
    """What a reward function may read of TRL's trainer state: the number of the update."""

    global_step: int = 0
    log_history: list[dict[str, float]] = field(default_factory=list)


@dataclass(frozen=True)
class RewardTask:
    """A task's prompts with the user's reward; `Score.correct` means a reward of exactly 1 (method.md, section 1)."""

    task: Task
    path: str
    function: Callable[..., Any]
    style: str = "auto"
    """What the function gets: `plain` strings, `conversational` message lists, or `auto` (see `with_reward`)."""
    family: str = "custom"
    state: TrainerState = field(default_factory=TrainerState)
    metrics: dict[str, list[float]] = field(default_factory=dict, compare=False)
    """What the function reported through `log_metric`."""

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def private(self) -> bool:
        """Whether the wrapped task's items may not be shown."""
        return bool(getattr(self.task, "private", False))

    @property
    def instruction_hash(self) -> str:
        """The wrapped task's."""
        return str(getattr(self.task, "instruction_hash", ""))

    def problems(self, split: str) -> list[Problem]:
        """The wrapped task's problems."""
        return self.task.problems(split)

    def messages(self, problem: Problem) -> list[Message]:
        """The wrapped task's chat turns."""
        return self.task.messages(problem)

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        """The wrapped task's worked examples."""
        return self.task.worked_examples()

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The reward of one response; UserError as in `score_batch`."""
        return self.score_batch([problem], [Response(text, (), finish_reason or "stop", 0)])[0]

    def score_batch(self, problems: Sequence[Problem], responses: Sequence[Response]) -> list[Score]:
        """One score a response, from one call of the function.

        UserError when it raises, returns another number of values, or a value that is no finite number.
        """
        if not problems:
            return []
        values = self._call(problems, responses)
        return [_to_score(self.path, problem, value) for problem, value in zip(problems, values, strict=True)]

    def _call(self, problems: Sequence[Problem], responses: Sequence[Response]) -> list[Any]:
        auto = self.style == "auto" and bool(problems[0].data.get("plain_prompt"))
        plain = auto or self.style == "plain"
        arguments = {
            "prompts": [problem.question if plain else self.task.messages(problem) for problem in problems],
            "completions": [response.text if plain else _turn(response) for response in responses],
            "completion_ids": [list(response.tokens) for response in responses],
            **columns(problems),
            "trainer_state": self.state,
            "log_extra": _ignore_extra,
            "log_metric": self._log_metric,
        }
        try:
            result = self.function(**_accepted(self.function, arguments))
            if inspect.isawaitable(result):
                result = _wait(result)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise UserError(
                f"reward function {self.path} raised {reason} (batch of {len(problems)}, "
                f"first problem {problems[0].id}); correct the function"
            ) from error
        values = _as_list(result)
        if values is None or len(values) != len(problems):
            got = f"{len(values)} values" if values is not None else f"a {type(result).__name__}"
            raise UserError(
                f"reward function {self.path} returned {got} for {len(problems)} completions; "
                "return a list with one number or None for each"
            )
        return values

    def _log_metric(self, name: str, value: float) -> None:
        self.metrics.setdefault(name, []).append(float(value))


def with_reward(task: Task, path: str, style: str = "auto") -> RewardTask:
    """`task` graded by the function at `path`; UserError when it cannot be imported.

    style: what the function gets, `plain` strings or `conversational` message lists. `auto` follows TRL: plain when
    the data set's own prompt column holds plain strings (tasks jsonl and hub), conversational otherwise.
    """
    if style not in STYLES:
        raise UserError(f"task.options.reward_style = {style!r}: choose one of {', '.join(STYLES)}")
    return RewardTask(task, path, load_function(path), style)


def load_function(path: str) -> Callable[..., Any]:
    """The function at `package.module:function`, the working directory included; UserError says which part is wrong."""
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise UserError(f"task.reward = {path!r}: write it as package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            raise UserError(
                f"task.reward: {module_name} needs the module {error.name}, which is not installed"
            ) from error
        raise UserError(
            f"task.reward: no module {module_name} in {here} or the environment; "
            "start in the directory that holds it, or install its package"
        ) from None
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"task.reward: importing {module_name} failed ({reason}); correct the module") from error
    function: Any = module
    for part in name.split("."):
        function = getattr(function, part, None)
    if function is None:
        near = difflib.get_close_matches(name, dir(module), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"task.reward: {module_name} has no function {name}{hint}")
    if not callable(function):
        raise UserError(f"task.reward: {path} is a {type(function).__name__}, not a function")
    return cast(Callable[..., Any], function)


def columns(problems: Sequence[Problem]) -> dict[str, list[Any]]:
    """The data set's columns as lists: the row itself for jsonl and hub, otherwise id, question, answer and data."""
    rows = [_row(problem) for problem in problems]
    names = {name for row in rows for name in row} - {"prompts", "completions", "completion_ids"}
    return {name: [row.get(name) for row in rows] for name in sorted(names - {"prompt", "completion"})}


def _row(problem: Problem) -> dict[str, Any]:
    row = problem.data.get("columns")
    if row is not None:
        return dict(row)
    return {"id": problem.id, "question": problem.question, "answer": problem.gold, **problem.data}


def _accepted(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments the function names, or all of them when it takes **kwargs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return arguments
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return arguments
    return {name: value for name, value in arguments.items() if name in {parameter.name for parameter in parameters}}


def _as_list(result: Any) -> list[Any] | None:
    if isinstance(result, str | bytes | dict) or not hasattr(result, "__len__"):
        return None
    return result.tolist() if hasattr(result, "tolist") else list(result)


def _to_score(path: str, problem: Problem, value: Any) -> Score:
    if value is None:
        return Score(reward=0.0, correct=False, format_ok=False, error=SKIPPED)
    try:
        reward = float(value)
    except (TypeError, ValueError):
        reward = math.nan
    if not math.isfinite(reward):
        raise UserError(
            f"reward function {path} returned {value!r} for problem {problem.id}; rewards must be finite numbers "
            "(or None, to skip a response)"
        )
    return Score(reward=reward, correct=reward == 1.0, format_ok=True)


def _turn(response: Response) -> list[Message]:
    return [{"role": "assistant", "content": response.text}]


def _ignore_extra(column: str, values: list[Any]) -> None:
    """TRL's `log_extra` adds a column to its table of completions; there is none here."""


def _wait(awaitable: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), _loop()).result()


async def _as_coroutine(awaitable: Any) -> Any:
    return await awaitable


@lru_cache(maxsize=1)
def _loop() -> asyncio.AbstractEventLoop:
    """One event loop in its own thread, as in TRL: clients bound to a loop keep working from batch to batch."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="broadreach-reward-loop", daemon=True).start()
    return loop
