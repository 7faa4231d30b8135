"""Which rows of TRL's batches are what: the batch of an update, and its micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

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


def micro_batches(lengths: torch.Tensor, plan: GrpoPlan) -> list[tuple[torch.Tensor, float]]:
    """Row numbers and loss weight of each micro-batch; `lengths` [rows] counts tokens (TRL shuffles and cuts evenly).

    Mini-batches are whole prompts in batch order; inside one, responses are sorted by length, so that there is little
    padding: the loss of a mini-batch does not depend on the order.
    """
    chunks, found = plan.chunks(len(lengths) // plan.group), []
    for first in range(0, len(chunks), plan.accumulation):
        mini = chunks[first : first + plan.accumulation]
        start = mini[0].start
        order = start + torch.argsort(lengths[start : mini[-1].stop], stable=True)
        found += [(order[chunk.start - start : chunk.stop - start], chunk.weight) for chunk in mini]
    return found


def cut(scored: dict[str, Any], plan: GrpoPlan) -> list[dict[str, Any]]:
    """The micro-batches of a scored generation batch, each with its `chunk_weight`."""
    lengths = scored["prompt_mask"].sum(1) + scored["completion_mask"].sum(1)
    return [
        {**{k: v[rows] if getattr(v, "ndim", 0) > 0 else v for k, v in scored.items()}, "chunk_weight": weight}
        for rows, weight in micro_batches(lengths, plan)
    ]


Scores = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
"""Log-probabilities [rows, kept], entropies (or None), auxiliary loss (or None)."""


def without_padding(
    score: Callable[..., Scores], ids: torch.Tensor, mask: torch.Tensor, kept: int, parts: list[torch.Tensor]
) -> Scores:
    """Score the rows of each part together, without the columns that are padding in all of them.

    `score(ids, mask, kept)` sees the last `kept` columns as completions; what was cut off comes back as zeros. Exact
    for rotary positions, which do not feel a shift. The old policy and the reference are scored in the very
    micro-batches of the loss, so that equal weights give equal bits: a ratio of exactly 1, a KL of exactly 0.
    """
    prompt = ids.shape[1] - kept
    found: list[Scores] = []
    for rows in parts:
        used = mask[rows].any(0).nonzero()[:, 0].tolist()
        first, last = min(used[0], prompt - 1), max(used[-1], prompt) + 1
        got = score(ids[rows, first:last], mask[rows, first:last], last - prompt)
        missing = prompt + kept - last
        found.append((_padded(got[0], missing), None if got[1] is None else _padded(got[1], missing), got[2]))
    back = torch.argsort(torch.cat(parts))
    entropies = [entropy for _, entropy, _ in found if entropy is not None]
    extra = [loss for _, _, loss in found if loss is not None]
    return (
        torch.cat([logs for logs, _, _ in found])[back],
        torch.cat(entropies)[back] if entropies else None,
        torch.stack(extra).mean() if extra else None,
    )


def _padded(values: torch.Tensor, missing: int) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, missing))
