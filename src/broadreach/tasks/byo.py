"""Bring your own data: a JSONL (JSON, CSV, Parquet) file or a Hub data set, described by configuration alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broadreach.tasks.byo_rows import Columns, to_problem
from broadreach.tasks.hygiene_keys import normalise
from broadreach.tasks.instructions import BY_FAMILY, instruction_hash
from broadreach.tasks.sources import Row, Source, numbered_lines, read_file, read_hub
from broadreach.types import FinishReason, Message, Problem, Score, UserError

FAMILIES = (*BY_FAMILY, "custom")
_SALT = "broadreach held-out rows 0: "


@dataclass(frozen=True)
class OwnDataTask:
    """A task over the user's rows (Task protocol): `train`, and `test` from a second source or a fixed fraction."""

    name: str
    family: str
    columns: Columns
    system: str | None
    """System message; None: the family's own. Conversations that bring a system turn keep theirs."""
    load: Mapping[str, Callable[[], list[tuple[int, Row]]]]
    """Split -> (row number, row)."""
    where: Mapping[str, str]
    """Split -> file or Hub id, for messages."""
    test_fraction: float = 0.0
    examples: tuple[tuple[Problem, str], ...] = ()
    _cache: dict[str, list[Problem]] = field(default_factory=dict, repr=False, compare=False)

    def problems(self, split: str) -> list[Problem]:
        """The problems of `split` in file order; UserError names the row that is broken."""
        if split in self.load and not (split == "train" and self.test_fraction > 0):
            return self._all(split)
        if split not in ("train", "test") or self.test_fraction <= 0:
            known = ", ".join(self.load)
            raise UserError(
                f"task {self.name} has no split {split!r} (splits: {known}); "
                "set task.options.test_path, test_split or test_fraction"
            )
        problems = self._all("train")
        held_out = _held_out([problem.question for problem in problems], self.test_fraction)
        return [problem for problem in problems if (normalise(problem.question) in held_out) == (split == "test")]

    def messages(self, problem: Problem) -> list[Message]:
        """The row's own conversation, or its prompt as user turn after the system message."""
        turns = problem.data.get("messages") or [{"role": "user", "content": problem.question}]
        system = BY_FAMILY.get(self.family, "") if self.system is None else self.system
        if system and turns[0]["role"] != "system":
            return [{"role": "system", "content": system}, *turns]
        return [dict(turn) for turn in turns]

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        """The examples given in the options."""
        return self.examples

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The verdict of the family; UserError for family `custom`, which only a reward function can grade."""
        if self.family == "custom":
            raise UserError(f"task {self.name}: family custom has no verifier; set task.reward")
        from broadreach.verify.grading import grade

        return grade(self.family, text, problem.gold, problem.data, finish_reason=finish_reason)

    @property
    def instruction_hash(self) -> str:
        """Changes with the system message and the worked examples."""
        shown = [f"{problem.question}\n{answer}" for problem, answer in self.examples]
        return instruction_hash("\n\n".join([str(self.system), self.family, *shown]))

    def _all(self, split: str) -> list[Problem]:
        if split not in self._cache:
            rows = self.load[split]()
            problems = [
                to_problem(self.family, self.columns, f"{self.where[split]}: row {number}", f"{split}-{number}", row)
                for number, row in rows
            ]
            _refuse_repeated_ids(self.where[split], problems)
            self._cache[split] = problems
        return self._cache[split]


def jsonl(
    path: str,
    prompt_column: str = "prompt",
    answer_column: str = "answer",
    family: str = "boxed_math",
    test_path: str | None = None,
    test_fraction: float | None = None,
    system: str | None = None,
    id_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    family_options: Mapping[str, Any] | None = None,
    examples: Sequence[Mapping[str, str]] = (),
) -> OwnDataTask:
    """Your own JSONL (or .json, .csv, .parquet) file with a prompt and an answer column."""
    load: dict[str, Callable[[], list[tuple[int, Row]]]] = {"train": lambda: _numbered(path)}
    where = {"train": path}
    if test_path is not None:
        load["test"] = lambda: _numbered(test_path)
        where["test"] = test_path
    named = Columns(prompt_column, answer_column, id_column, dict(columns or {}), dict(family_options or {}))
    return _task("jsonl", family, named, system, load, where, test_fraction, examples)


def hub(
    id: str,
    prompt_column: str = "prompt",
    answer_column: str = "answer",
    family: str = "boxed_math",
    config: str | None = None,
    split: str = "train",
    test_split: str | None = None,
    test_fraction: float | None = None,
    system: str | None = None,
    id_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    family_options: Mapping[str, Any] | None = None,
    examples: Sequence[Mapping[str, str]] = (),
) -> OwnDataTask:
    """Any Hugging Face Hub data set with a prompt and an answer column."""
    load: dict[str, Callable[[], list[tuple[int, Row]]]] = {"train": lambda: _hub_rows(id, config, split)}
    where = {"train": f"{id}, split {split}"}
    if test_split is not None:
        load["test"] = lambda: _hub_rows(id, config, test_split)
        where["test"] = f"{id}, split {test_split}"
    named = Columns(prompt_column, answer_column, id_column, dict(columns or {}), dict(family_options or {}))
    return _task("hub", family, named, system, load, where, test_fraction, examples)


def _task(
    name: str,
    family: str,
    columns: Columns,
    system: str | None,
    load: Mapping[str, Callable[[], list[tuple[int, Row]]]],
    where: Mapping[str, str],
    test_fraction: float | None,
    examples: Sequence[Mapping[str, str]],
) -> OwnDataTask:
    if family not in FAMILIES:
        raise UserError(f"task {name}: unknown family {family!r}; choose one of {', '.join(FAMILIES)}")
    fraction = (0.1 if "test" not in load else 0.0) if test_fraction is None else test_fraction
    if not 0 <= fraction < 1:
        raise UserError(f"task {name}: test_fraction = {fraction} must be at least 0 and below 1")
    if fraction > 0 and "test" in load:
        raise UserError(f"task {name}: give a test source or test_fraction, not both")
    shown = tuple(_example(name, number, example) for number, example in enumerate(examples, start=1))
    return OwnDataTask(name, family, columns, system, load, where, fraction, shown)


def _example(name: str, number: int, example: Mapping[str, str]) -> tuple[Problem, str]:
    if set(example) != {"prompt", "response"}:
        raise UserError(f"task {name}: examples[{number - 1}] needs exactly the keys prompt and response")
    return Problem(f"example-{number}", example["prompt"], ""), example["response"]


def _numbered(path: str) -> list[tuple[int, Row]]:
    file = Path(path).expanduser()
    if not file.exists():
        raise UserError(f"data file {file} does not exist; correct task.options.path (relative to {Path.cwd()})")
    if file.is_dir():
        raise UserError(f"{file} is a directory; give a .jsonl, .json, .csv or .parquet file")
    rows = numbered_lines(file) if file.suffix not in (".json", ".csv", ".parquet") else None
    if rows is None:
        rows = list(enumerate(read_file(file), start=1))
    if not rows:
        raise UserError(f"data file {file} holds no rows")
    return rows


def _hub_rows(identity: str, config: str | None, split: str) -> list[tuple[int, Row]]:
    rows = read_hub(Source(rows=None, hub=identity, config=config, split=split))
    return list(enumerate(rows, start=1))


def _held_out(questions: Sequence[str], fraction: float) -> set[str]:
    """The normalised texts of the test side: the smallest hashes, so that copies of a text stay on one side."""
    texts = sorted({normalise(question) for question in questions}, key=_order)
    return set(texts[: max(1, round(len(texts) * fraction))])


def _order(text: str) -> str:
    return hashlib.sha256(f"{_SALT}{text}".encode()).hexdigest()


def _refuse_repeated_ids(where: str, problems: Sequence[Problem]) -> None:
    seen: set[str] = set()
    for problem in problems:
        if problem.id in seen:
            raise UserError(f"{where}: id {problem.id!r} occurs twice; ids must be unique (task.options.id_column)")
        seen.add(problem.id)
