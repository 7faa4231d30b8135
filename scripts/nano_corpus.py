"""The pretraining corpus of broadreach-nano: four families, several ways of answering each (docs/nano.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from broadreach.tasks.nano import chain, choice, context, countdown, splits
from broadreach.types import Problem


@dataclass(frozen=True)
class Source:
    """One family as the corpus sees it."""

    draw: splits.Drawer
    answer: Callable[[Problem, str, Generator], str]
    levels: Sequence[int]
    """How often each level appears; not the pattern of the test split."""


SOURCES: Mapping[str, Source] = {
    "nano-chain": Source(chain.draw, chain.answer, (0, 1, 2, 3, 4) * 4 + (5,)),
    "nano-choice": Source(choice.draw, choice.answer, choice.LEVELS),
    "nano-context": Source(context.draw, context.answer, context.LEVELS),
    "nano-countdown": Source(countdown.draw, countdown.answer, countdown.LEVELS),
}
SHARES = {"nano-chain": 0.45, "nano-choice": 0.15, "nano-context": 0.2, "nano-countdown": 0.2}
"""Share of each family in the corpus."""
WORKED = {"worked": 1.0}
"""Stage 1: only the worked way."""
MIXED = {"worked": 0.30, "guessed": 0.45, "unboxed": 0.10, "formless": 0.15}
"""Stage 2: the ways of answering that post-training selects among."""


def examples(seed: int, ways: Mapping[str, float], shares: Mapping[str, float] = SHARES) -> Iterator[tuple[str, str]]:
    """Endless (question, response) pairs, the same for the same arguments."""
    rng = splits.generator("corpus", seed)
    streams = {name: splits.corpus(name, source.levels, source.draw, seed) for name, source in SOURCES.items()}
    names, way_names = list(shares), list(ways)
    family_edges = _edges(list(shares.values()))
    way_edges = _edges(list(ways.values()))
    while True:
        name = names[_index(family_edges, rng.random())]
        way = way_names[_index(way_edges, rng.random())]
        problem = next(streams[name])
        yield problem.question, SOURCES[name].answer(problem, way, rng)


def _edges(weights: list[float]) -> list[float]:
    total, edges = 0.0, []
    for weight in weights:
        total += weight / sum(weights)
        edges.append(total)
    return edges


def _index(edges: list[float], at: float) -> int:
    return next((i for i, edge in enumerate(edges) if at < edge), len(edges) - 1)
