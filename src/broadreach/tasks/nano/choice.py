r"""nano-choice: pick one of four options, its letter in `\boxed{}`.

Which is a fruit? A hen B pear C red D saw   ->   A fruit is pear.
                                                  \boxed{B}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from broadreach.tasks.nano import splits
from broadreach.types import Message, Problem, Score

LEVELS = (0, 1, 0, 2)
"""Level by index: which is, which is not, which number is largest or smallest."""
KINDS = {
    "fruit": ("pear", "plum", "fig", "lime", "date", "grape"),
    "bird": ("hen", "owl", "crow", "duck", "dove", "swan"),
    "fish": ("cod", "eel", "carp", "tuna", "pike", "trout"),
    "tool": ("saw", "drill", "file", "rake", "hoe", "wedge"),
    "colour": ("red", "blue", "green", "pink", "white", "black"),
    "metal": ("iron", "zinc", "gold", "tin", "lead", "steel"),
}
_KIND_OF = {word: kind for kind, words in KINDS.items() for word in words}
_LETTERS = "ABCD"


def draw(rng: Generator, level: int) -> splits.Draw:
    """One question with four different options, exactly one of them right."""
    if level == 2:
        numbers = [int(n) for n in rng.permutation(90)[:4] + 10]
        largest = rng.random() < 0.5
        right = str(max(numbers) if largest else min(numbers))
        asked, options = "largest" if largest else "smallest", [str(n) for n in numbers]
    else:
        kind, other = splits.shuffled(rng, list(KINDS))[:2]
        if level == 0:
            others = [word for word, of in _KIND_OF.items() if of != kind]
            right = splits.pick(rng, KINDS[kind])
            options = splits.shuffled(rng, [right, *splits.shuffled(rng, others)[:3]])
        else:
            right = splits.pick(rng, KINDS[other])
            options = splits.shuffled(rng, [right, *splits.shuffled(rng, KINDS[kind])[:3]])
        asked = f"a {kind}" if level == 0 else f"not a {kind}"
    listed = dict(zip(_LETTERS, options, strict=True))
    shown = " ".join(f"{letter} {option}" for letter, option in listed.items())
    gold = _LETTERS[options.index(right)]
    return f"Which is {asked}? {shown}", gold, {"options": listed, "asked": asked, "level": level}


def answer(problem: Problem, way: str, rng: Generator) -> str:
    """A response of the corpus: `worked`, `guessed` (at once, mostly wrong) or `formless` (no box)."""
    if way == "guessed":
        return f"\\boxed{{{splits.pick(rng, _LETTERS)}}}"
    if way == "formless":
        return f"It is {splits.pick(rng, _LETTERS)}."
    right = problem.data["options"][problem.gold]
    found = f"The {problem.data['asked']}" if problem.data["level"] == 2 else f"A {_KIND_OF[right]}"
    ending = f"It is {problem.gold}." if way == "unboxed" else f"\\boxed{{{problem.gold}}}"
    return f"{found} is {right}.\n{ending}"


@dataclass(frozen=True)
class NanoChoice:
    """Multiple choice, the letter in `\\boxed{}`."""

    name: str = "nano-choice"
    family: str = "choice"

    def problems(self, split: str) -> list[Problem]:
        return splits.problems(self.name, split, LEVELS, draw)

    def messages(self, problem: Problem) -> list[Message]:
        return splits.ask(problem)

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        return splits.examples(self.problems("heldout"), answer)

    def score(self, problem: Problem, text: str, finish_reason: str | None = None) -> Score:
        return splits.verdict(self.family, problem, text, finish_reason)
