"""nano-countdown: reach a target with two or three numbers, each used once, the expression in `<answer>` tags.

Make 31 from 5 8 9.   ->   5*8=40
                           40-9=31
                           <answer>5*8-9</answer>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from broadreach.tasks.nano import splits
from broadreach.types import Message, Problem, Score

LEVELS = (0, 1, 2, 1)
"""Level by index: two numbers, three small numbers, three larger numbers."""
_LARGEST = {0: 60, 1: 10, 2: 20}


def draw(rng: Generator, level: int) -> splits.Draw:
    """One solvable problem; its key ignores the order of the numbers, so that no split sees a permutation."""
    while True:
        numbers = [int(n) for n in rng.integers(1, _LARGEST[level] + 1, size=2 if level == 0 else 3)]
        steps, solution, value = _walk(rng, numbers)
        if 1 <= value <= 99 and value not in numbers:
            break
    shown = splits.shuffled(rng, numbers)
    text = " ".join(str(n) for n in shown)
    data = {"numbers": shown, "target": value, "steps": steps, "level": level}
    data["key"] = f"{value}:{sorted(numbers)}"
    return f"Make {value} from {text}.", solution, data


def _walk(rng: Generator, numbers: Sequence[int]) -> tuple[list[str], str, int]:
    """Combine the numbers left to right at random: (worked steps, expression, value)."""
    value, expression, steps = numbers[0], str(numbers[0]), []
    for position, number in enumerate(numbers[1:]):
        symbol = splits.pick(rng, "+-*")
        result = {"+": value + number, "-": value - number, "*": value * number}[symbol]
        if result < 1:
            symbol, result = "+", value + number
        if symbol == "*" and position and not expression.replace("*", "").isdigit():
            expression = f"({expression})"
        steps.append(f"{value}{symbol}{number}={result}")
        expression += f"{symbol}{number}"
        value = result
    return steps, expression, value


def answer(problem: Problem, way: str, rng: Generator) -> str:
    """A response of the corpus: `worked`, `guessed` (at once, mostly wrong) or `formless` (no tags)."""
    guess = _walk(rng, splits.shuffled(rng, problem.data["numbers"]))[1]
    if way == "guessed":
        return f"<answer>{guess}</answer>"
    if way == "formless":
        return f"It is {guess}."
    ending = f"It is {problem.gold}." if way == "unboxed" else f"<answer>{problem.gold}</answer>"
    return "\n".join([*problem.data["steps"], ending])


@dataclass(frozen=True)
class NanoCountdown:
    """Small Countdown, the expression in `<answer>` tags."""

    name: str = "nano-countdown"
    family: str = "countdown"

    def problems(self, split: str) -> list[Problem]:
        return splits.problems(self.name, split, LEVELS, draw)

    def messages(self, problem: Problem) -> list[Message]:
        return splits.ask(problem)

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        return splits.examples(self.problems("heldout"), answer)

    def score(self, problem: Problem, text: str, finish_reason: str | None = None) -> Score:
        return splits.verdict(self.family, problem, text, finish_reason)
