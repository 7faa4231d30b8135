"""Data hygiene: repeated problems, test problems in the training data, unusable golds, over-long prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from broadreach.config import TaskSettings
from broadreach.tasks.base import Task
from broadreach.tasks.byo import OwnDataTask
from broadreach.tasks.dataset import DatasetTask
from broadreach.tasks.hygiene_keys import Key, keys
from broadreach.types import Problem, UserError

Pair: TypeAlias = tuple[str, str]
"""(problem id, what it is about: the first copy's id, `task:id` of the test problem, or the reason)."""

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Hygiene:
    """What was found in a training split; everything is counted by the length of a tuple."""

    task: str
    rows: int
    """Rows of the split before anything was left out."""
    kept: int
    unusable: tuple[Pair, ...] = ()
    """Golds that are empty, null or cut off; left out."""
    too_long: tuple[str, ...] = ()
    """Prompts above the limit; left out."""
    duplicates: tuple[Pair, ...] = ()
    """Later copies of an earlier problem; refused in stored data unless allowed."""
    overlaps: tuple[Pair, ...] = ()
    """Training problems that are in a test split; refused unless that test set is allowed by name."""
    not_compared: tuple[str, ...] = ()
    """Test splits whose data are not on this machine."""

    def lines(self) -> list[str]:
        """The report for people, one finding a line."""
        out = [f"{self.task}: {self.kept} of {self.rows} training problems kept"]
        out += _line("unusable golds, dropped", [f"{identity} ({reason})" for identity, reason in self.unusable])
        out += _line("prompts over the length limit, dropped", list(self.too_long))
        out += _line("repeats of earlier problems", [f"{identity} = {first}" for identity, first in self.duplicates])
        out += _line("also in a test split", [f"{identity} = {test}" for identity, test in self.overlaps])
        out += _line("test splits not compared (no data here)", list(self.not_compared))
        return out


def duplicates(problems: Iterable[Problem]) -> list[Pair]:
    """(later id, first id) of every repeated problem."""
    first: dict[Key, str] = {}
    found: list[Pair] = []
    for problem in problems:
        earlier = next((first[key] for key in keys(problem) if key in first), None)
        if earlier is not None:
            found.append((problem.id, earlier))
        for key in keys(problem):
            first.setdefault(key, problem.id)
    return found


def overlaps(training: Iterable[Problem], test: Iterable[Problem]) -> list[Pair]:
    """(training id, test id) of every training problem that is also a test problem."""
    held_out = {key: problem.id for problem in test for key in keys(problem)}
    found: list[Pair] = []
    for problem in training:
        match = next((held_out[key] for key in keys(problem) if key in held_out), None)
        if match is not None:
            found.append((problem.id, match))
    return found


def examine(
    task: Task,
    lengths: Callable[[Sequence[Problem]], Sequence[int]] | None = None,
    max_prompt_tokens: int | None = None,
) -> tuple[list[Problem], Hygiene]:
    """The training problems that remain, and everything that was found; `lengths` gives prompt lengths in tokens."""
    base = _unwrapped(task)
    problems = task.problems("train")
    unusable = base.dropped("train") if isinstance(base, DatasetTask) else []
    rows = len(base.rows("train")) if isinstance(base, DatasetTask) else len(problems)
    too_long: tuple[str, ...] = ()
    if max_prompt_tokens is not None and lengths is not None:
        long = [count > max_prompt_tokens for count in lengths(problems)]
        too_long = tuple(problem.id for problem, over in zip(problems, long, strict=True) if over)
        problems = [problem for problem, over in zip(problems, long, strict=True) if not over]
    shared, missing = _against_tests(base, problems)
    return problems, Hygiene(
        task=task.name,
        rows=rows,
        kept=len(problems),
        unusable=tuple((problem.id, reason) for problem, reason in unusable),
        too_long=too_long,
        duplicates=tuple(duplicates(problems)),
        overlaps=tuple(shared),
        not_compared=tuple(missing),
    )


def training_problems(
    task: Task,
    settings: TaskSettings,
    lengths: Callable[[Sequence[Problem]], Sequence[int]] | None = None,
    max_prompt_tokens: int | None = None,
) -> tuple[list[Problem], Hygiene]:
    """What to train on, and the report.

    UserError for test problems or repeated ones among them, unless the settings allow them by name, and for none left.
    """
    problems, report = examine(task, lengths, max_prompt_tokens)
    _refuse_overlaps(task, report, settings)
    _refuse_repeats(task, report, settings)
    if not problems:
        limit = f" within train.max_prompt_tokens = {max_prompt_tokens}" if report.too_long else ""
        raise UserError(
            f"task {task.name}: no training problem is left{limit}; {len(report.too_long)} prompts were too long"
        )
    return problems[: settings.max_train], report


def _refuse_overlaps(task: Task, report: Hygiene, settings: TaskSettings) -> None:
    """UserError for training problems of a test set that `task.allow_overlap` does not name."""
    found = [(identity, test, _test_set(test)) for identity, test in report.overlaps]
    refused = [pair for pair in found if not _allowed(settings.allow_overlap, pair[2])]
    if not refused:
        return
    shown = ", ".join(f"{identity} = {test}" for identity, test, _ in refused[:_EXAMPLES])
    names = sorted({name for *_, name in refused} | set(_names(settings.allow_overlap)))
    drop = "leave them out with task.options.drop_overlap = true, or " if _can_drop(task) else ""
    raise UserError(
        f"task {task.name}: {len(refused)} training problems are also test problems ({shown}); "
        f"{drop}train on them knowingly with task.allow_overlap = {_toml(names)}"
    )


def _refuse_repeats(task: Task, report: Hygiene, settings: TaskSettings) -> None:
    """UserError for repeated problems in stored data; generators draw with replacement, there they are reported."""
    base = _unwrapped(task)
    stored = isinstance(base, DatasetTask | OwnDataTask)
    if not report.duplicates or not stored or _allowed(settings.allow_duplicates, base.name):
        return
    shown = ", ".join(f"{identity} = {first}" for identity, first in report.duplicates[:_EXAMPLES])
    drop = "leave them out with task.options.drop_duplicates = true" if _can_drop(task) else "remove the rows"
    raise UserError(
        f"task {task.name}: {len(report.duplicates)} training problems repeat earlier ones ({shown}); "
        f"{drop}, or train on them knowingly with task.allow_duplicates = {_toml([base.name])}"
    )


def _test_set(test: str) -> str:
    """`olympiadbench` of `olympiadbench:test-3`, `reasoning_gym:chain_sum` of `reasoning_gym:chain_sum:test-3`."""
    return test.rpartition(":")[0]


def _allowed(permission: bool | tuple[str, ...], name: str) -> bool:
    return permission is True or name in _names(permission)


def _names(permission: bool | tuple[str, ...]) -> tuple[str, ...]:
    return permission if isinstance(permission, tuple) else ()


def _toml(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def repeated(task: DatasetTask) -> Callable[[Problem], bool]:
    """Whether a training problem repeats an earlier one (task option `drop_duplicates`)."""
    later: list[set[str]] = []

    def is_repeat(problem: Problem) -> bool:
        if not later:
            later.append({identity for identity, _ in duplicates(task.problems("train"))})
        return problem.id in later[0]

    return is_repeat


def overlapping(task: DatasetTask) -> Callable[[Problem], bool]:
    """Whether a training problem is also in one of the task's test splits (task option `drop_overlap`)."""
    cache: list[set[Key]] = []

    def is_shared(problem: Problem) -> bool:
        if not cache:
            cache.append({key for _, test in _tests(task)[0] for other in test for key in keys(other)})
        return any(key in cache[0] for key in keys(problem))

    return is_shared


def _against_tests(task: Task, problems: Sequence[Problem]) -> tuple[list[Pair], list[str]]:
    tests, missing = _tests(task)
    found = [(identity, f"{name}:{other}") for name, test in tests for identity, other in overlaps(problems, test)]
    return found, missing


def _tests(task: Task) -> tuple[list[tuple[str, list[Problem]]], list[str]]:
    """(task name, test problems) of the task's own test split and of those it is tested on; names without data here."""
    tests: list[tuple[str, list[Problem]]] = []
    missing: list[str] = []
    if isinstance(task, DatasetTask):
        if "test" in task.splits or "test" in task.aliases:
            tests.append((task.name, task.problems("test")))
        for name in task.tested_on:
            other = _get(name)
            if other.is_local("test"):
                tests.append((name, other.problems("test")))
            else:
                missing.append(name)
        return tests, missing
    try:
        tests.append((task.name, task.problems("test")))
    except UserError:
        missing.append(f"{task.name} test")
    return tests, missing


def _get(name: str) -> DatasetTask:
    from broadreach.tasks.registry import get_task

    other = get_task(TaskSettings(name=name))
    assert isinstance(other, DatasetTask)
    return other


def _unwrapped(task: Task) -> Task:
    inner: Task = getattr(task, "task", task)
    return inner


def _can_drop(task: Task) -> bool:
    return isinstance(_unwrapped(task), DatasetTask)


def _line(what: str, found: list[str]) -> list[str]:
    if not found:
        return []
    more = ", ..." if len(found) > _EXAMPLES else ""
    return [f"  {len(found)} {what}: {', '.join(found[:_EXAMPLES])}{more}"]
