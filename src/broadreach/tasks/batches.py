"""Which problems each update sees: a pure function of (seed, update), the same for every training method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class Batches:
    """Shuffled mini-batches over `problems` items, epoch after epoch (method.md section 2, step 1)."""

    problems: int
    batch: int
    seed: int
    shuffle: bool = True
    keep_tail: bool = True
    skip: int = 0
    """Update 1 sees the batch after so many others (a later stage goes on where the one before stopped)."""

    def __post_init__(self) -> None:
        if self.batch > self.problems:
            raise UserError(
                f"train.batch = {self.batch} is larger than the {self.problems} training problems: "
                f"set train.batch to at most {self.problems}"
            )

    @property
    def per_epoch(self) -> int:
        """Updates in one pass over the data, the short tail batch included when it is kept."""
        whole, tail = divmod(self.problems, self.batch)
        return whole + bool(tail and self.keep_tail)

    def at(self, step: int) -> list[int]:
        """Positions of the problems of update `step` (1-based)."""
        epoch, position = divmod(step - 1 + self.skip, self.per_epoch)
        order = _order(self.problems, self.seed, epoch) if self.shuffle else range(self.problems)
        return [int(i) for i in order[position * self.batch : (position + 1) * self.batch]]


@lru_cache(maxsize=4)
def _order(problems: int, seed: int, epoch: int) -> tuple[int, ...]:
    generator = np.random.Generator(np.random.PCG64([seed, epoch]))
    return tuple(int(i) for i in generator.permutation(problems))
