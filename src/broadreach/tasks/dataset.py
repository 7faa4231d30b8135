"""The one concrete task over stored rows: a loader a split, a prompt, a verifier family; everything else is data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from broadreach.tasks import golds
from broadreach.tasks.instructions import instruction_hash
from broadreach.tasks.sources import Row, Source, Where, available, read
from broadreach.types import FinishReason, Message, Problem, Score, UserError

Convert: TypeAlias = Callable[[int, Row], Problem]
"""(row index, row) -> problem; a missing gold becomes "", and is dropped and counted."""

Example: TypeAlias = tuple[Problem, str]
"""A worked example: the problem and the model answer shown for it."""


@dataclass(frozen=True)
class Split:
    """One split: its source and how a row becomes a problem."""

    source: Source
    convert: Convert
    select: Callable[[list[Problem]], list[Problem]] | None = None
    """Which of the converted rows are this split (SVAMP's seeded split)."""


def system_and_user(instruction: str) -> Callable[[Problem], list[Message]]:
    """The usual prompt: the instruction as system message (left out when empty), the question as user message."""

    def ask(problem: Problem) -> list[Message]:
        turns: list[Message] = [{"role": "system", "content": instruction}] if instruction else []
        return [*turns, {"role": "user", "content": problem.question}]

    return ask


@dataclass(frozen=True)
class DatasetTask:
    """A task over stored rows (Task protocol); problems with an unusable gold are left out and listed by `dropped`."""

    name: str
    family: str
    splits: Mapping[str, Split]
    instruction: str
    licence: str
    where: Where = "auto"
    ask: Callable[[Problem], list[Message]] | None = None
    """The chat turns of a problem; default: `system_and_user(instruction)`."""
    examples: tuple[Example, ...] = ()
    shots: int = 0
    """Worked examples in use; they are left out of the training split."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of a split: CommonsenseQA's "test" is its public "validation"."""
    private: bool = False
    """Items may not be shown, logged or cached in clear (GPQA)."""
    tested_on: tuple[str, ...] = ()
    """Other tasks whose test problems may not be trained on."""
    left_out: Callable[[Problem], bool] | None = None
    """Training problems for which this is true are left out (they are in a test split, or repeat another)."""
    origin: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each split that was read came from."""
    _rows: dict[str, list[Problem]] = field(default_factory=dict, repr=False, compare=False)

    def problems(self, split: str) -> list[Problem]:
        """The problems of `split` in file order, unusable golds and the worked examples in use left out."""
        shown = {problem.id for problem, _ in self.examples[: self.shots]} if self._is_training(split) else set()
        return [
            problem
            for problem in self.rows(split)
            if golds.unusable(problem.gold) is None
            and problem.id not in shown
            and not self._is_left_out(split, problem)
        ]

    def rows(self, split: str) -> list[Problem]:
        """Every row of `split`, unusable golds included; UserError names the splits there are."""
        name = self.aliases.get(split, split)
        if name not in self.splits:
            known = ", ".join([*self.splits, *(f"{alias} (= {of})" for alias, of in self.aliases.items())])
            raise UserError(f"task {self.name} has no split {split!r}; splits: {known}")
        if name not in self._rows:
            rows, self.origin[name] = read(self.splits[name].source, self.where)
            problems = [self.splits[name].convert(index, row) for index, row in enumerate(rows)]
            select = self.splits[name].select
            self._rows[name] = select(problems) if select is not None else problems
        return self._rows[name]

    def dropped(self, split: str) -> list[tuple[Problem, str]]:
        """The rows whose gold is unusable, with the reason."""
        found = ((problem, golds.unusable(problem.gold)) for problem in self.rows(split))
        return [(problem, reason) for problem, reason in found if reason is not None]

    def messages(self, problem: Problem) -> list[Message]:
        """The chat turns that ask this problem, without worked examples."""
        return (self.ask or system_and_user(self.instruction))(problem)

    def worked_examples(self) -> Sequence[Example]:
        """Problems with a model answer, from the training side."""
        return self.examples

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The verdict on one response, in this process and without a pool; never raises."""
        from broadreach.verify.grading import grade

        return grade(self.family, text, problem.gold, problem.data, finish_reason=finish_reason)

    @property
    def instruction_hash(self) -> str:
        """Changes with the instruction and with the worked examples in use."""
        shown = [f"{problem.question}\n{answer}" for problem, answer in self.examples[: self.shots]]
        return instruction_hash("\n\n".join([self.instruction, *shown]))

    def digest(self, split: str) -> str:
        """16 hexadecimal digits over ids, questions and golds of a split, in order: the data's fingerprint."""
        state = hashlib.sha256()
        for problem in self.problems(split):
            for text in (problem.id, problem.question, problem.gold):
                state.update(f"{len(text)}:{text}".encode())
        return state.hexdigest()[:16]

    def is_local(self, split: str) -> bool:
        """Whether the split's rows are on this machine."""
        name = self.aliases.get(split, split)
        return name in self.splits and available(self.splits[name].source)

    def _is_training(self, split: str) -> bool:
        return self.aliases.get(split, split) == "train"

    def _is_left_out(self, split: str, problem: Problem) -> bool:
        return self.left_out is not None and self._is_training(split) and self.left_out(problem)
