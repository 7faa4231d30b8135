"""What the decoding loop needs of a model: read prompts, then go on token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from torch import Tensor

Tokens: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Distinct prompts without the shared prefix, longest first, and which of them each row answers."""

    distinct: tuple[Tokens, ...]
    of_row: tuple[int, ...]

    @property
    def longest(self) -> int:
        return len(self.distinct[0])


class Rows(Protocol):
    """The state of one batch between forward passes; rows are ordered member by member."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed one token a row, int64 [rows]; returns the logits after it, [rows, vocabulary]."""

    def feed(self, tokens: Tensor) -> Tensor:
        """Feed several tokens a row, int64 [rows, n]; returns the logits after each, [rows, n, vocabulary]."""

    def keep(self, rows: Tensor, width: int) -> None:
        """Go on with these rows only (int64, member by member, `width` of each)."""


class Runner(Protocol):
    """A model that serves `members` sets of weights side by side (1 for an ordinary model)."""

    members: int
    vocabulary: int
    column_bytes: int
    """Memory of one token's keys and values in one row."""
    most_prompt_tokens: int
    """Most prompt tokens (rows times longest prompt) that one batch should bring."""

    def set_prefix(self, prefix: Tokens) -> None:
        """Compute what all rows share; call it again whenever the weights have changed."""

    def start(self, prompts: Prompts, room: int) -> tuple[Tensor, Rows]:
        """Read the prompts; returns the first logits [members * rows, vocabulary] and the rows, which have room for
        `room` more tokens each."""


def common_prefix(prompts: Sequence[Tokens]) -> Tokens:
    """The longest run of tokens that all prompts begin with, leaving each at least one token of its own."""
    shortest, longest = min(prompts), max(prompts)
    limit = min(len(prompt) for prompt in prompts) - 1
    length = 0
    while length < limit and shortest[length] == longest[length]:
        length += 1
    return shortest[:length]


def distinct_prompts(prompts: Sequence[Tokens]) -> Prompts:
    """Each prompt once, in order of first appearance."""
    index: dict[Tokens, int] = {}
    of_row = tuple(index.setdefault(prompt, len(index)) for prompt in prompts)
    return Prompts(tuple(index), of_row)
