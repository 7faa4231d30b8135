"""Runs an unmodified Transformers model over the rows of a decode batch: prefix, prompts, then token by token.

Two runners with one face. `SharedPrefixRunner` uses our attention and cache; `StockRunner` uses the model's own
attention and Transformers' own cache, for models that need more than plain causal attention (sliding windows, soft
caps, attention sinks).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from broadreach.engines import attention
from broadreach.engines.cache import NO_PREFIX, PrefixCache, RowCache

Tokens: TypeAlias = tuple[int, ...]

PREFILL_TOKENS = 2048
"""Prompt tokens of one forward pass: enough for full speed, and few enough for little memory."""


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
    call: ModelCall

    def set_prefix(self, prefix: Tokens) -> None:
        """Compute what all rows share; call it again whenever the weights have changed."""

    def start(self, prompts: Prompts, room: int) -> tuple[Tensor, Rows]:
        """Read the prompts; returns the first logits [members * rows, vocabulary] and the rows, which have room for
        `room` more tokens each."""


class SharedPrefixRunner:
    """The fast path: one copy of the prefix a member, preallocated row cache."""

    def __init__(self, model: nn.Module, members: int = 1) -> None:
        self.members = members
        self.call = ModelCall(model)
        self._prefix = NO_PREFIX

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
        cache = RowCache(self.call.layers, self.members, width, prompts.longest + room, self._prefix)
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
        ids, pad = _left_padded(part)
        tokens = ids.shape[1]
        columns = torch.arange(tokens)
        positions = (columns - pad[:, None]).clamp_(min=0) + cache.shared.length
        cache.mask = _visible(pad, columns, tokens, cache.shared.length).repeat(self.members, 1, 1, 1)
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
        cache.mask = _visible(cache.pad, new, cache.length + count, cache.shared.length)
        logits = self._forward(tokens)
        cache.mask = None
        return logits

    def _forward(self, tokens: Tensor) -> Tensor:
        cache, count = self._cache, tokens.shape[1]
        with attention.reading(cache):
            logits = self._call(tokens, cache.positions(count), cache, last=count)
        cache.length += count
        return logits

    def keep(self, rows: Tensor, width: int) -> None:
        self._cache.keep(rows, width)


class StockRunner:
    """The general path, in the terms of Transformers' `generate()`: left padding, a 2-D mask, its own cache."""

    def __init__(self, model: nn.Module, members: int = 1) -> None:
        self.members = members
        self.call = ModelCall(model)
        self._prefix: Tokens = ()

    def set_prefix(self, prefix: Tokens) -> None:
        self._prefix = prefix

    def start(self, prompts: Prompts, room: int) -> tuple[Tensor, StockRows]:
        ids, pad = _left_padded([self._prefix + prompt for prompt in prompts.distinct])
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


class ModelCall:
    """One forward pass, whatever the model calls its arguments."""

    def __init__(self, model: nn.Module) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._model = model
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._keeps_logits = "logits_to_keep" in parameters
        self._takes_positions = "position_ids" in parameters
        self.config: Any = model.config
        text = self.config.get_text_config()
        self.layers: int = text.num_hidden_layers
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        dtype = getattr(self.config, "dtype", None) or torch.float32
        self.column_bytes: int = 2 * self.layers * heads * size * dtype.itemsize
        """Memory of one token's keys and values."""

    def __call__(self, ids: Tensor, positions: Tensor, cache: Any, *, last: int, mask: Tensor | None = None) -> Tensor:
        """Logits of the last `last` tokens, [rows, last, vocabulary]."""
        arguments: dict[str, Any] = {self._cache_name: cache, "use_cache": True}
        if self._keeps_logits:
            arguments["logits_to_keep"] = last
        if self._takes_positions:
            arguments["position_ids"] = positions
        if mask is not None:
            arguments["attention_mask"] = mask
        logits: Tensor = self._model(ids, **arguments).logits
        return logits[:, -last:]


def choose_runner(model: nn.Module, members: int = 1) -> SharedPrefixRunner | StockRunner:
    """The fast runner when the model's attention is plain causal attention, else the general one.

    Decided by one tiny forward pass through our attention, which notes what the model asks of it.
    """
    before = model.config._attn_implementation  # type: ignore[union-attr]
    if _plain_attention(model, members):
        return SharedPrefixRunner(model, members)
    model.set_attn_implementation(before)  # type: ignore[operator]
    return StockRunner(model, members)


def _plain_attention(model: nn.Module, members: int) -> bool:
    if not getattr(model, "_supports_attention_backend", False):
        return False
    config: Any = model.config
    config = config.get_text_config()
    if set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return False
    model.set_attn_implementation(attention.NAME)  # type: ignore[operator]
    probe = torch.zeros(members, 2, dtype=torch.long)
    cache = PrefixCache(config.num_hidden_layers)
    with torch.inference_mode(), attention.recording_unsupported() as found, attention.reading(cache):
        try:
            ModelCall(model)(probe, torch.arange(2).expand(members, -1), cache, last=1)
        except (AttributeError, TypeError, RuntimeError, KeyError, IndexError):
            return False
    return not found and all(layer.is_initialized for layer in cache.layers)


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


def _portions(prompts: Sequence[Tokens], budget: int) -> list[tuple[int, int]]:
    """Split prompts, longest first, so that padded tokens of a portion stay within the budget."""
    portions, first = [], 0
    while first < len(prompts):
        last = min(len(prompts), first + max(1, budget // len(prompts[first])))
        portions.append((first, last))
        first = last
    return portions


def _left_padded(prompts: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
    """Token ids [prompts, longest] and how many leading columns of each are padding (filled with its first token)."""
    longest = max(len(prompt) for prompt in prompts)
    pad = [longest - len(prompt) for prompt in prompts]
    ids = torch.tensor([prompt[:1] * missing + prompt for missing, prompt in zip(pad, prompts, strict=True)])
    return ids, torch.tensor(pad)


def _visible(pad: Tensor, new: Tensor, columns: int, prefix: int) -> Tensor:
    """bool [rows, 1, new tokens, prefix + columns]: the prefix, and from the row's first column up to the token itself
    (a padding token sees itself, so that its softmax is defined)."""
    own = torch.arange(columns)
    causal = own <= new[:, None]
    visible = (causal & (own >= pad[:, None, None])) | (own == new[:, None])
    before = visible.new_ones(*visible.shape[:2], prefix)
    return torch.cat([before, visible], dim=2).unsqueeze(1)
