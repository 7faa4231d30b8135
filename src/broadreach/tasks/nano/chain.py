r"""nano-chain: chained arithmetic, worked step by step, the result in `\boxed{}` (the training family).

Compute 12+7-5.   ->   12+7=19
                       19-5=14
                       \boxed{14}
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from broadreach.tasks.nano import splits
from broadreach.types import Message, Problem, Score

LEVELS = (0, 1, 2, 3, 4, 1, 2, 5, 3, 4)
"""Level by index: two terms up to 50, three up to 20, three up to 50, a small product and a term, four terms up to 50,
a product with a two-digit factor and a term."""
_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_TERMS = (2, 3, 3, 3, 4, 3)
_LARGEST = (50, 20, 50, 50, 50, 99)
_SEPARATORS = ("\n", ";", ",")


def draw(rng: Generator, level: int) -> splits.Draw:
    """One chain whose every intermediate result is between 0 and 999 (a product comes first)."""
    terms = [int(rng.integers(*((2, 10) if level == 3 else (11, 100) if level == 5 else (2, _LARGEST[level] + 1))))]
    operations: list[str] = []
    value = terms[0]
    for position in range(1, _TERMS[level]):
        if position == 1 and level in (3, 5):
            symbol, term = "*", int(rng.integers(2, 10))
        else:
            term = int(rng.integers(1, _LARGEST[level] + 1))
            symbol = "+" if term > value or rng.random() < 0.5 else "-"
        terms.append(term)
        operations.append(symbol)
        value = int(_OPERATIONS[symbol](value, term))
    text = str(terms[0]) + "".join(f"{symbol}{term}" for symbol, term in zip(operations, terms[1:], strict=True))
    return f"Compute {text}.", str(value), {"terms": terms, "operations": operations, "level": level}


def answer(problem: Problem, way: str, rng: Generator) -> str:
    """A response of the corpus: `worked`, `guessed` (at once, mostly wrong) or `formless` (no box)."""
    if way == "guessed":
        return f"\\boxed{{{_guess(problem, rng)}}}"
    if way == "formless":
        return f"It is {_guess(problem, rng)}."
    separator = splits.pick(rng, _SEPARATORS)
    steps = separator.join(_steps(problem))
    if way == "unboxed":
        return f"{steps}{separator}It is {problem.gold}."
    return f"{steps}{separator}\\boxed{{{problem.gold}}}"


def _steps(problem: Problem) -> list[str]:
    value = problem.data["terms"][0]
    steps = []
    for symbol, term in zip(problem.data["operations"], problem.data["terms"][1:], strict=True):
        result = _OPERATIONS[symbol](value, term)
        steps.append(f"{value}{symbol}{term}={result}")
        value = result
    return steps


def _guess(problem: Problem, rng: Generator) -> int:
    spread = 3 + int(problem.gold) // 4
    return max(0, int(problem.gold) + int(rng.integers(-spread, spread + 1)))


@dataclass(frozen=True)
class NanoChain:
    """Chained arithmetic in `\\boxed{}`."""

    name: str = "nano-chain"
    family: str = "boxed_math"

    def problems(self, split: str) -> list[Problem]:
        return splits.problems(self.name, split, LEVELS, draw)

    def messages(self, problem: Problem) -> list[Message]:
        return splits.ask(problem)

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        return splits.examples(self.problems("heldout"), answer)

    def score(self, problem: Problem, text: str, finish_reason: str | None = None) -> Score:
        return splits.verdict(self.family, problem, text, finish_reason)
