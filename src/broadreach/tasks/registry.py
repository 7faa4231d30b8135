"""From a name in the configuration to a task: built-in, from a file or the Hub, reasoning-gym, or someone's package."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from broadreach.config import TaskSettings
from broadreach.tasks.base import Task
from broadreach.tasks.dataset import DatasetTask
from broadreach.types import UserError

ENTRY_POINT_GROUP = "broadreach.tasks"
"""Entry points of this group are factories: called with task.options as keyword arguments, they return a Task."""

BUILT_IN = {
    "gsm8k": "broadreach.tasks.gsm8k:gsm8k",
    "svamp": "broadreach.tasks.svamp:svamp",
    "deepscaler": "broadreach.tasks.deepscaler:deepscaler",
    "math500": "broadreach.tasks.math500:math500",
    "aime24": "broadreach.tasks.aime24:aime24",
    "aime25": "broadreach.tasks.aime25:aime25",
    "amc23": "broadreach.tasks.amc23:amc23",
    "minerva": "broadreach.tasks.minerva:minerva",
    "olympiadbench": "broadreach.tasks.olympiadbench:olympiadbench",
    "commonsense_qa": "broadreach.tasks.commonsense_qa:commonsense_qa",
    "hotpotqa": "broadreach.tasks.hotpotqa:hotpotqa",
    "countdown": "broadreach.tasks.countdown:countdown",
    "gpqa": "broadreach.tasks.gpqa:gpqa",
    "mbpp": "broadreach.tasks.mbpp:mbpp",
    "mbpp-sanitized": "broadreach.tasks.mbpp:mbpp_sanitized",
}
"""Tasks that need no options."""

PATTERNS = {
    "jsonl": "broadreach.tasks.byo:jsonl",
    "hub": "broadreach.tasks.byo:hub",
}
"""Tasks that are described by their options alone."""

REASONING_GYM = "reasoning_gym:"
_NANO = ("nano-chain", "nano-choice", "nano-context", "nano-countdown")


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One line of `broadreach tasks list`; nothing is loaded for it."""

    name: str
    kind: str
    """built in, from options, reasoning-gym, or the distribution that brings it."""
    summary: str
    family: str = ""
    splits: tuple[str, ...] = ()
    licence: str = ""
    data: str = ""
    """here (on this machine), Hub, or generated."""


def get_task(settings: TaskSettings) -> Task:
    """The task that `settings` names, its options applied; UserError for an unknown name, option, or too many shots."""
    options = dict(settings.options)
    style = options.pop("reward_style", "auto")
    drop = [name for name in ("drop_overlap", "drop_duplicates") if options.pop(name, False)]
    if settings.name in PATTERNS and settings.reward is not None:
        options.setdefault("family", "custom")
    task = _construct(settings.name, options)
    if isinstance(task, DatasetTask):
        task = replace(task, shots=settings.shots)
    if settings.shots > 0 and settings.shots > (count := len(task.worked_examples())):
        raise UserError(f"task {settings.name} has {count} worked examples: task.shots = {settings.shots} is too many")
    if drop:
        task = _without(task, drop)
    if settings.reward is not None:
        from broadreach.tasks.reward_function import with_reward

        return with_reward(task, settings.reward, style)
    return task


def list_tasks() -> list[TaskInfo]:
    """Every task that can be named: built in, from options, reasoning-gym, and from installed packages."""
    listed = [_describe(name) for name in (*_NANO, *BUILT_IN)]
    listed += [TaskInfo(name, "from options", _summary(target)) for name, target in PATTERNS.items()]
    listed.append(
        TaskInfo(
            f"{REASONING_GYM}NAME", "reasoning-gym", "Any reasoning-gym generator, with its options.", data="generated"
        )
    )
    for name, point in sorted(_plugins().items()):
        origin = point.dist.name if point.dist is not None else point.value
        listed.append(TaskInfo(name, f"package {origin}", point.value))
    return listed


def built_in_names() -> tuple[str, ...]:
    """Names of the tasks that are whole without options."""
    return (*_NANO, *BUILT_IN)


def _construct(name: str, options: dict[str, Any]) -> Task:
    if name in _NANO:
        from broadreach.tasks.nano import NANO_TASKS

        return _call(name, NANO_TASKS[name], options)
    if name.startswith(REASONING_GYM):
        from broadreach.tasks.rgym import reasoning_gym_task

        return reasoning_gym_task(name.removeprefix(REASONING_GYM), options)
    target = BUILT_IN.get(name) or PATTERNS.get(name)
    if target is not None:
        return _call(name, _resolve(target), options)
    plugins = _plugins()
    if name in plugins:
        return _call(name, _load_plugin(plugins[name]), options)
    raise UserError(_unknown(name, list(plugins)))


def _call(name: str, factory: Callable[..., Any], options: dict[str, Any]) -> Task:
    known = inspect.signature(factory).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for key in options:
        if key not in known and not takes_any:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"options: {', '.join(known) or 'none'}"
            raise UserError(f"task {name} has no option {key!r} (task.options); {hint}")
    missing = [
        key
        for key, parameter in known.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        and key not in options
    ]
    if missing:
        raise UserError(f"task {name} needs task.options.{missing[0]}; set it in [task.options]")
    task: Task = factory(**options)
    return task


def _resolve(target: str) -> Callable[..., Any]:
    module, _, attribute = target.partition(":")
    factory: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return factory


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _load_plugin(point: EntryPoint) -> Callable[..., Any]:
    try:
        factory: Callable[..., Any] = point.load()
    except Exception as error:  # another package's import can raise anything
        origin = point.dist.name if point.dist is not None else "an installed package"
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(
            f"task {point.name}: {origin} cannot import {point.value} ({reason}); repair that package"
        ) from error
    return factory


def _unknown(name: str, plugins: list[str]) -> str:
    names = [*_NANO, *BUILT_IN, *PATTERNS, *plugins]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"known tasks: {', '.join(names)}"
    return f"unknown task {name!r}; {hint} (`broadreach tasks list` shows all)"


def _describe(name: str) -> TaskInfo:
    if name in _NANO:
        from broadreach.tasks.nano import NANO_TASKS

        task = NANO_TASKS[name]()
        summary = (NANO_TASKS[name].__doc__ or "").splitlines()[0]
        return TaskInfo(name, "built in", summary, task.family, ("train", "test"), "Apache-2.0", "generated")
    task = _call(name, _resolve(BUILT_IN[name]), {})
    assert isinstance(task, DatasetTask)
    splits = (*task.splits, *task.aliases)
    data = "here" if any(task.is_local(split) for split in task.splits) else "Hub"
    return TaskInfo(name, "built in", _summary(BUILT_IN[name]), task.family, splits, task.licence, data)


def _summary(target: str) -> str:
    return (_resolve(target).__doc__ or "").strip().splitlines()[0]


def _without(task: Task, what: list[str]) -> Task:
    """The task without the training problems that the options name."""
    from broadreach.tasks.hygiene import overlapping, repeated

    if not isinstance(task, DatasetTask):
        raise UserError(f"task {task.name}: task.options.{what[0]} works for stored data sets only; remove it")
    finders = {"drop_overlap": overlapping, "drop_duplicates": repeated}
    found = [finders[name](task) for name in what]
    return replace(task, left_out=lambda problem: any(check(problem) for check in found))
