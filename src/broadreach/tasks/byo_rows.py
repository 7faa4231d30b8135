"""One row of the user's own data as a problem, with an error that says what is wrong in which row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broadreach.tasks.sources import Row, text_of
from broadreach.types import Message, Problem, UserError

_NEEDED = {"countdown": ("numbers", "target"), "code": ("prompt_tests",)}
"""Family -> what it needs besides the answer."""
_OPTIONAL = {"choice": ("options",), "code": ("setup", "imports")}
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column holds what."""

    prompt: str
    answer: str
    identity: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    """What a family needs -> its column, where the two names differ ({"numbers": "nums"})."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the family, the same for every row ({"float_rel_tol": 0.01})."""


def to_problem(family: str, columns: Columns, where: str, identity: str, row: Row) -> Problem:
    """The problem of one row; UserError with `where` when a column or the gold is missing or of the wrong kind."""
    prompt = _column(row, columns.prompt, "prompt_column", where)
    data: dict[str, Any] = {"columns": row, **columns.options, **_family_data(family, columns, where, row)}
    if isinstance(prompt, str):
        question, data["plain_prompt"] = prompt, True
    else:
        data["messages"] = _conversation(prompt, columns.prompt, where)
        question = data["messages"][-1]["content"]
    if not question.strip():
        raise UserError(f"{where}: the prompt in column {columns.prompt!r} is empty")
    if columns.identity is not None:
        identity = str(_column(row, columns.identity, "id_column", where))
    return Problem(identity, question, _gold(family, columns, where, row, data), data)


def _gold(family: str, columns: Columns, where: str, row: Row, data: Mapping[str, Any]) -> str:
    if family == "custom":
        return text_of(row, columns.answer)
    if family == "countdown":
        return str(data["target"])
    if family == "code":
        return text_of(row, columns.answer)
    _column(row, columns.answer, "answer_column", where)
    gold = text_of(row, columns.answer).strip()
    if not gold:
        raise UserError(f"{where}: no gold answer in column {columns.answer!r}; complete or remove the row")
    if family == "choice":
        return _letter(gold, data.get("options", {}), where)
    return gold


def _letter(gold: str, options: Mapping[str, str], where: str) -> str:
    if gold.upper() in options or (not options and len(gold) == 1 and gold.isalpha()):
        return gold.upper()
    named = [letter for letter, text in options.items() if text == gold]
    if len(named) == 1:
        return named[0]
    known = f"one of {', '.join(options)}, or an option's text" if options else "a letter"
    raise UserError(f"{where}: the answer {gold!r} is not {known}")


def _family_data(family: str, columns: Columns, where: str, row: Row) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name in _NEEDED.get(family, ()):
        data[name] = _column(row, columns.extra.get(name, name), f"columns.{name}", where)
    for name in _OPTIONAL.get(family, ()):
        column = columns.extra.get(name, name)
        if row.get(column) is not None:
            data[name] = row[column]
    if "options" in data:
        data["options"] = _options(data["options"], where)
    if family == "countdown":
        data["numbers"], data["target"] = _integers(data["numbers"], data["target"], where)
    if family == "code" and not _are_texts(data["prompt_tests"]):
        raise UserError(f"{where}: the tests must be a list of assert statements")
    return data


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _options(value: Any, where: str) -> dict[str, str]:
    """Letter -> text, from a mapping, a list of texts, or parallel lists of labels and texts."""
    if isinstance(value, Mapping) and isinstance(value.get("label"), list) and isinstance(value.get("text"), list):
        if not value["label"] or len(value["label"]) != len(value["text"]):
            raise UserError(f"{where}: the options' labels and texts must be two lists of the same length")
        return {str(label).upper(): str(text) for label, text in zip(value["label"], value["text"], strict=True)}
    if isinstance(value, Mapping) and value:
        return {str(label).upper(): str(text) for label, text in value.items() if text is not None}
    if isinstance(value, list) and 2 <= len(value) <= len(_LETTERS):
        return dict(zip(_LETTERS, map(str, value), strict=False))
    raise UserError(f"{where}: options must be a list of 2 to 26 texts, or letter = text")


def _integers(numbers: Any, target: Any, where: str) -> tuple[list[int], int]:
    try:
        if isinstance(numbers, str) or any(int(number) != float(number) for number in numbers):
            raise ValueError
        return [int(number) for number in numbers], int(target)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{where}: numbers must be a list of integers and target an integer") from None


def _conversation(value: Any, column: str, where: str) -> list[Message]:
    turns = value if isinstance(value, list) else []
    good = [
        turn for turn in turns if isinstance(turn, Mapping) and {"role", "content"} <= set(turn) and turn["content"]
    ]
    if not good or len(good) != len(turns) or good[-1]["role"] != "user":
        raise UserError(
            f"{where}: column {column!r} must be text, or chat turns with role and content that end with the user's"
        )
    return [{"role": str(turn["role"]), "content": str(turn["content"])} for turn in good]


def _column(row: Row, column: str, option: str, where: str) -> Any:
    if row.get(column) is None:
        if column in row:
            raise UserError(f"{where}: column {column!r} is empty; complete or remove the row")
        there = ", ".join(map(str, row)) or "none"
        raise UserError(f"{where}: no column {column!r}; columns there: {there} (set task.options.{option})")
    return row[column]
