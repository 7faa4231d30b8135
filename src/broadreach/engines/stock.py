"""The general way to run a model: its own attention and Transformers' own cache, in the terms of `generate()`.

For models that need more than plain causal attention: sliding windows, soft caps, sinks, recurrent states.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from broadreach.engines.model_call import ModelCall, left_padded
from broadreach.engines.runner import Prompts, Tokens

PREFILL_TOKENS = 16384
"""Most prompt tokens of one batch: all are read in one pass."""


class StockRunner:
    """The general path, in the terms of Transformers' `generate()`: left padding, a 2-D mask, its own cache."""

    def __init__(self, model: nn.Module, members: int = 1) -> None:
        self.members = members
        self.call = ModelCall(model)
        self.vocabulary, self.column_bytes = self.call.vocabulary, self.call.column_bytes
        self.most_prompt_tokens = PREFILL_TOKENS
        self._prefix: Tokens = ()

    def set_prefix(self, prefix: Tokens) -> None:
        self._prefix = prefix

    def start(self, prompts: Prompts, room: int) -> tuple[Tensor, StockRows]:
        ids, pad = left_padded([self._prefix + prompt for prompt in prompts.distinct])
        mask = (torch.arange(ids.shape[1]) >= pad[:, None]).long().repeat(self.members, 1)
        cache = DynamicCache(config=self.call.config)
        positions = (mask.cumsum(1) - 1).clamp_(min=0)
        logits = self.call(ids.repeat(self.members, 1), positions, cache, last=1, mask=mask)[:, 0]
        rows = StockRows(self.call, cache, mask)
        of_row = torch.tensor(prompts.of_row)
        if prompts.of_row != tuple(range(len(prompts.distinct))):
            index = torch.cat([of_row + m * len(prompts.distinct) for m in range(self.members)])
            rows.keep(index, len(prompts.of_row))
            logits = logits[index]
        return logits, rows


class StockRows:
    """Rows of the general path."""

    def __init__(self, call: ModelCall, cache: Any, mask: Tensor) -> None:
        self._call, self._cache, self._mask = call, cache, mask

    def step(self, tokens: Tensor) -> Tensor:
        return self.feed(tokens.unsqueeze(1))[:, 0]

    def feed(self, tokens: Tensor) -> Tensor:
        rows, count = tokens.shape
        self._mask = torch.cat([self._mask, self._mask.new_ones(rows, count)], dim=1)
        positions = self._mask.cumsum(1)[:, -count:] - 1
        return self._call(tokens, positions, self._cache, last=count, mask=self._mask)

    def keep(self, rows: Tensor, width: int) -> None:
        self._cache.reorder_cache(rows)
        self._mask = self._mask[rows]
