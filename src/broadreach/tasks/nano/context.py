"""nano-context: a question about a few sentences, the answer in `<answer>` tags; some need two of the sentences.

Ann has the cup. Bob is in the park. Ann is in the barn. Where is the cup?
->  So Ann has the cup. Ann is in the barn.
    <answer> barn</answer>
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.random import Generator

from broadreach.tasks.nano import splits
from broadreach.types import Message, Problem, Score

LEVELS = (0, 1, 2, 2)
"""Level by index: who has a thing, where a person is, where a thing is (two sentences)."""
NAMES = ("Ann", "Bob", "Eve", "Sam", "Tom", "Kim", "Lee", "Max", "Ida", "Jon", "Amy", "Ben")
THINGS = ("cup", "hat", "key", "pen", "map", "bag", "ball", "coin", "book", "lamp", "ring", "bell")
PLACES = ("park", "barn", "shop", "hall", "yard", "cave", "tent", "mill", "port", "farm", "camp", "lake")


def draw(rng: Generator, level: int) -> splits.Draw:
    """One context of two or three persons; the data keep the sentences that support the answer."""
    people = 2 if level == 2 and rng.random() < 0.5 else 3
    names = splits.shuffled(rng, NAMES)[:people]
    things = splits.shuffled(rng, THINGS)[:people]
    places = splits.shuffled(rng, PLACES)[:people]
    has = [f"{name} has the {thing}." for name, thing in zip(names, things, strict=True)]
    is_in = [f"{name} is in the {place}." for name, place in zip(names, places, strict=True)]
    if level == 0:
        facts, support, question, gold = has, has[:1], f"Who has the {things[0]}?", names[0]
    elif level == 1:
        facts, support, question, gold = is_in, is_in[:1], f"Where is {names[0]}?", places[0]
    else:
        facts, support = has + is_in, [has[0], is_in[0]]
        question, gold = f"Where is the {things[0]}?", places[0]
    context = " ".join(splits.shuffled(rng, facts))
    pool = NAMES if level == 0 else PLACES
    present = names if level == 0 else places
    data = {"context": context, "support": support, "present": present, "pool": pool, "level": level}
    return f"{context} {question}", gold, data


def answer(problem: Problem, way: str, rng: Generator) -> str:
    """A response of the corpus: `worked`, `guessed` (at once, mostly wrong) or `formless` (no tags)."""
    known = problem.data["present"] if rng.random() < 0.5 else problem.data["pool"]
    if way == "guessed":
        return f"<answer> {splits.pick(rng, known)}</answer>"
    if way == "formless":
        return f"It is {splits.pick(rng, known)}."
    ending = f"It is {problem.gold}." if way == "unboxed" else f"<answer> {problem.gold}</answer>"
    return f"So {' '.join(problem.data['support'])}\n{ending}"


@dataclass(frozen=True)
class NanoContext:
    """Question answering over a short context, the answer in `<answer>` tags."""

    name: str = "nano-context"
    family: str = "answer_tag"

    def problems(self, split: str) -> list[Problem]:
        return splits.problems(self.name, split, LEVELS, draw)

    def messages(self, problem: Problem) -> list[Message]:
        return splits.ask(problem)

    def worked_examples(self) -> Sequence[tuple[Problem, str]]:
        return splits.examples(self.problems("heldout"), answer)

    def score(self, problem: Problem, text: str, finish_reason: str | None = None) -> Score:
        return splits.verdict(self.family, problem, text, finish_reason)
