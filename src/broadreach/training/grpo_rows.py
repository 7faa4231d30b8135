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


def cut(scored: dict[str, Any], plan: GrpoPlan, prompts: int) -> list[dict[str, Any]]:
    """The micro-batches of a scored generation batch (TRL shuffles responses and cuts evenly).

    Mini-batches are whole prompts in batch order; inside one, responses are sorted by length, so that there is little
    padding: the loss of a mini-batch does not depend on the order.
    """
    lengths = scored["prompt_mask"].sum(1) + scored["completion_mask"].sum(1)
    chunks, parts = plan.chunks(prompts), []
    for first in range(0, len(chunks), plan.accumulation):
        mini = chunks[first : first + plan.accumulation]
        start = mini[0].start
        order = start + torch.argsort(lengths[start : mini[-1].stop], stable=True)
        parts += [(order[chunk.start - start : chunk.stop - start], chunk.weight) for chunk in mini]
    return [
        {**{k: v[rows] if getattr(v, "ndim", 0) > 0 else v for k, v in scored.items()}, "chunk_weight": weight}
        for rows, weight in parts
    ]


Scores = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
"""Log-probabilities [rows, kept], entropies (or None), auxiliary loss (or None)."""


def without_padding(
    score: Callable[..., Scores], input_ids: torch.Tensor, attention_mask: torch.Tensor, kept: int, size: int
) -> Scores:
    """Score rows `size` at a time, of similar length, without the columns that are padding in all of them.

    `score(input_ids, attention_mask, kept)` sees the last `kept` columns as completions; what was cut off comes back as
    zeros. Exact for rotary positions, which do not feel a shift.
    """
    order = torch.argsort(attention_mask.sum(1), stable=True)
    prompt = input_ids.shape[1] - kept
    found: list[Scores] = []
    for part in torch.split(order, size):
        used = attention_mask[part].any(0).nonzero()[:, 0]
        first, last = (min(int(used[0]), prompt - 1), max(int(used[-1]), prompt) + 1) if len(used) else (0, prompt + 1)
        got = score(input_ids[part, first:last], attention_mask[part, first:last], last - prompt)
        missing = prompt + kept - last
        found.append((_padded(got[0], missing), None if got[1] is None else _padded(got[1], missing), got[2]))
    back = torch.argsort(order)
    entropies = [entropy for _, entropy, _ in found if entropy is not None]
    extra = [loss for _, _, loss in found if loss is not None]
    return (
        torch.cat([logs for logs, _, _ in found])[back],
        torch.cat(entropies)[back] if entropies else None,
        torch.stack(extra).mean() if extra else None,
    )


def _padded(values: torch.Tensor, missing: int) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, missing))
