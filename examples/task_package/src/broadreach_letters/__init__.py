"""A task in a package of its own: how often does a letter occur in a word?

Train on it as on any other:

    [task]
    name = "letters"
    options = { words = 200 }
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from broadreach.types import FinishReason, Message, Problem, Score, UserError
from broadreach.verify.grading import grade

WORDS = ("banana", "mississippi", "committee", "bookkeeper", "assessment", "parallel", "referee", "aardvark")


@dataclass(frozen=True)
class Letters:
    """Counts letters in made-up words; graded by the family `boxed_math`."""

    words: int
    name: str = "letters"
    family: str = "boxed_math"
    """One of broadreach's own families; use "custom" when `score` has a verifier of its own."""

    def problems(self, split: str) -> list[Problem]:
        """A fixed list for each split; the two share no word."""
        if split not in ("train", "test"):
            raise UserError(f"task letters has no split {split!r}; splits: train, test")
        return [_problem(split, index) for index in range(self.words)]

    def messages(self, problem: Problem) -> list[Message]:
        """The chat turns that ask one problem; broadreach adds the model's chat template."""
        return [{"role": "user", "content": f"{problem.question} Put the number in \\boxed{{}}."}]

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        """For `task.shots`; not from the test split."""
        example = Problem("example-1", "How often does the letter n occur in banana?", "2")
        return [(example, "ba-n-a-n-a: n occurs twice. \\boxed{2}")]

    def score(self, problem: Problem, text: str, finish_reason: FinishReason | None = None) -> Score:
        """The verdict on one response: never raises."""
        return grade(self.family, text, problem.gold, problem.data, finish_reason=finish_reason)


def letters(words: int = 100) -> Letters:
    """What the entry point names: options as keyword arguments."""
    if words < 1:
        raise UserError(f"task letters: words = {words} must be at least 1")
    return Letters(words)


def _problem(split: str, index: int) -> Problem:
    digest = hashlib.sha256(f"{split} {index}".encode()).hexdigest()
    word = (
        WORDS[int(digest[0], 16) % len(WORDS)]
        + split[:2]
        + digest[1:4].translate(str.maketrans("0123456789", "ghijklmnop"))
    )
    letter = word[int(digest[5], 16) % len(word)]
    question = f"How often does the letter {letter} occur in {word}?"
    return Problem(f"{split}-{index}", question, str(word.count(letter)))
