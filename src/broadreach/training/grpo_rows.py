"""Which rows of TRL's batches are what: the batch of an update, and its micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from broadreach.training.grpo_plan import GrpoPlan
from broadreach.training.setup import Prepared


class UpdateSampler:
    """Row numbers of every micro-batch: the whole batch of the update, each prompt `group` times.

    TRL looks at the rows only where it generates; all micro-batches of the update get the same.
    """

    def __init__(self, plan: GrpoPlan, prepared: Prepared) -> None:
        self.plan = plan
        self.prepared = prepared

    def __iter__(self) -> Iterator[list[int]]:
        for update in range(1, self.prepared.total + 1):
            rows = [row for row in self.prepared.batches.at(update) for _ in range(self.plan.group)]
            for _ in range(self.plan.chunks_per_pass * self.plan.iterations):
                yield rows

    def __len__(self) -> int:
        return self.prepared.total * self.plan.chunks_per_pass * self.plan.iterations


def cut(scored: dict[str, Any], plan: GrpoPlan, prompts: int) -> list[dict[str, Any]]:
    """The micro-batches of a scored generation batch, in batch order (TRL shuffles and cuts evenly)."""
    return [
        {
            **{k: v[c.start : c.stop] if getattr(v, "ndim", 0) > 0 else v for k, v in scored.items()},
            "chunk_weight": c.weight,
        }
        for c in plan.chunks(prompts)
    ]
