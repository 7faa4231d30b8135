"""The fast way to run a model: our attention and cache, one copy of the shared prefix a member.

For models whose attention is plain causal attention. `stock.py` serves the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from broadreach.engines import attention
from broadreach.engines.cache import NO_PREFIX, Pool, PrefixCache, RowCache
from broadreach.engines.model_call import ModelCall, left_padded
from broadreach.engines.runner import Prompts, Tokens

PREFILL_TOKENS = 512
"""Prompt tokens of one member in one forward pass: enough for full speed, and few, so that prompts of one pass have
nearly one length and memory stays small."""


class SharedPrefixRunner:
    """The fast path: one copy of the prefix a member, preallocated row cache."""

    def __init__(self, model: nn.Module, members: int = 1) -> None:
        self.members = members
        self.call = ModelCall(model)
        self.vocabulary, self.column_bytes = self.call.vocabulary, self.call.column_bytes
        self.most_prompt_tokens = 2**30
        self._prefix = NO_PREFIX
        self._pool = Pool()

    def set_prefix(self, prefix: Tokens) -> None:
        if not prefix:
            self._prefix = NO_PREFIX
            return
        cache = PrefixCache(self.call.layers)
        ids = torch.tensor(prefix).expand(self.members, -1)
        positions = torch.arange(len(prefix)).expand(self.members, -1)
        with attention.reading(cache):
            self.call(ids, positions, cache, last=1)
        self._prefix = cache.prefix()

    def start(self, prompts: Prompts, room: int) -> tuple[Tensor, SharedPrefixRows]:
        width = len(prompts.of_row)
        cache = RowCache(self.call.layers, self.members, width, prompts.longest + room, self._prefix, self._pool)
        of_row = torch.tensor(prompts.of_row)
        logits: Tensor | None = None
        for first, last in _portions(prompts.distinct, max(1, PREFILL_TOKENS // self.members)):
            part = prompts.distinct[first:last]
            targets = torch.nonzero((of_row >= first) & (of_row < last)).squeeze(1)
            sources = of_row[targets] - first
            cache.fill(targets, sources, prompts.longest)
            found = self._read(cache, part).view(self.members, len(part), -1)
            if logits is None:
                logits = found.new_empty(self.members, width, found.shape[-1])
            logits[:, targets] = found[:, sources]
        assert logits is not None
        lengths = torch.tensor([len(prompt) for prompt in prompts.distinct])[of_row]
        cache.filled(prompts.longest, (prompts.longest - lengths).repeat(self.members))
        return logits.view(self.members * width, -1), SharedPrefixRows(self.call, cache)

    def _read(self, cache: RowCache, part: Sequence[Tokens]) -> Tensor:
        """One prefill pass over some prompts, left-padded to the longest; the last logits [members * prompts, n]."""
        ids, pad = left_padded(part)
        tokens = ids.shape[1]
        columns = torch.arange(tokens)
        positions = (columns - pad[:, None]).clamp_(min=0) + cache.shared.length
        cache.hidden = _hidden(pad, columns, tokens).repeat(self.members, 1, 1, 1, 1)
        with attention.reading(cache):
            return self.call(ids.repeat(self.members, 1), positions.repeat(self.members, 1), cache, last=1)[:, 0]


class SharedPrefixRows:
    """Rows of the fast path."""

    def __init__(self, call: ModelCall, cache: RowCache) -> None:
        self._call, self._cache = call, cache

    def step(self, tokens: Tensor) -> Tensor:
        return self._forward(tokens.unsqueeze(1))[:, 0]

    def feed(self, tokens: Tensor) -> Tensor:
        cache = self._cache
        count = tokens.shape[1]
        new = torch.arange(cache.length, cache.length + count)
        cache.hidden = _hidden(cache.pad, new, cache.length + count)
        return self._forward(tokens)

    def _forward(self, tokens: Tensor) -> Tensor:
        cache, count = self._cache, tokens.shape[1]
        with attention.reading(cache):
            logits = self._call(tokens, cache.positions(count), cache, last=count)
        cache.length += count
        return logits

    def keep(self, rows: Tensor, width: int) -> None:
        self._cache.keep(rows, width)


def _portions(prompts: Sequence[Tokens], budget: int) -> list[tuple[int, int]]:
    """Split prompts, longest first, so that padded tokens of a portion stay within the budget."""
    portions, first = [], 0
    while first < len(prompts):
        last = min(len(prompts), first + max(1, budget // len(prompts[first])))
        portions.append((first, last))
        first = last
    return portions


def _hidden(pad: Tensor, new: Tensor, columns: int) -> Tensor:
    """bool [rows, 1, 1, new tokens, columns]: the padding and the columns after the token itself.

    A padding token sees itself, so that its softmax is defined.
    """
    own = torch.arange(columns)
    hidden = (own > new[:, None]) | ((own < pad[:, None, None]) & (own != new[:, None]))
    return hidden[:, None, None]
