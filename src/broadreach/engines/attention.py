"""Our attention, registered with Transformers: it reads the shared prefix and the row cache directly.

Unmodified models call it through their attention interface (`attn_implementation="broadreach"`). The prefix is read
once per member for all of its rows, as one matrix product, instead of once per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from broadreach.engines.cache import PrefixCache, RowCache

NAME = "broadreach"

NEUTRAL = frozenset(
    {
        "cache_position",
        "dropout",
        "head_mask",
        "is_causal",
        "kwargs",
        "num_items_in_batch",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "position_embeddings",
        "position_ids",
        "return_dict",
        "scaling",
        "use_cache",
    }
)
"""Keyword arguments that do not change what attention computes at inference."""

_cache: ContextVar[PrefixCache | RowCache | None] = ContextVar("broadreach_cache", default=None)
_unsupported: ContextVar[set[str] | None] = ContextVar("broadreach_unsupported", default=None)


@contextmanager
def reading(cache: PrefixCache | RowCache) -> Iterator[None]:
    """Attention inside this block reads the given cache."""
    token = _cache.set(cache)
    try:
        yield
    finally:
        _cache.reset(token)


@contextmanager
def recording_unsupported() -> Iterator[set[str]]:
    """Collects the arguments by which a model asks for more than plain attention (windows, soft caps, sinks)."""
    found: set[str] = set()
    token = _unsupported.set(found)
    try:
        yield found
    finally:
        _unsupported.reset(token)


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention of new tokens: query [rows, heads, tokens, size], key and value [rows, shared heads, tokens, size]
    just computed; returns [rows, tokens, heads, size]."""
    found = _unsupported.get()
    cache = _cache.get()
    if found is not None:
        found |= _beyond_plain(module, key, value, attention_mask, kwargs, cache)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if cache is None or isinstance(cache, PrefixCache):
        out = _causal(query, key, value, scale)
    else:
        layer: int = module.layer_idx  # type: ignore[assignment]
        out = _after_prefix(cache, layer, query, *cache.own(layer, key, value), scale)
    return out.transpose(1, 2), None


def _beyond_plain(
    module: torch.nn.Module,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    kwargs: dict[str, Any],
    cache: PrefixCache | RowCache | None,
) -> set[str]:
    """What a model asks for besides causal attention to just what it gave the cache."""
    found = {name for name, given in kwargs.items() if given is not None and name not in NEUTRAL}
    if attention_mask is not None:
        found.add("attention_mask")
    if not getattr(module, "is_causal", True) or kwargs.get("is_causal") is False:
        found.add("is_causal")
    handed = cache.handed.get(getattr(module, "layer_idx", -1)) if isinstance(cache, PrefixCache) else None
    if handed is None or handed[0] is not key or handed[1] is not value:
        found.add("keys and values that are made after the cache")
    return found


def _causal(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    return scaled_dot_product_attention(
        query, _repeat(key, groups), _repeat(value, groups), is_causal=query.shape[2] > 1, scale=scale
    )


def _after_prefix(
    cache: RowCache, layer: int, query: Tensor, own_keys: Tensor, own_values: Tensor, scale: float
) -> Tensor:
    """Scores over the prefix and over the row's own columns, one softmax, two products of weights and values."""
    rows, heads, tokens, size = query.shape
    shared_heads, columns = own_keys.shape[1], own_keys.shape[2]
    flat, each = rows * shared_heads, heads // shared_heads * tokens
    asked = (query * scale).reshape(flat, each, size)
    scores = torch.bmm(asked, own_keys.reshape(flat, columns, -1).transpose(1, 2))
    scores = _hide(scores.view(rows, shared_heads, -1, tokens, columns), cache).view(rows, shared_heads, each, columns)
    prefix = cache.shared.length
    if prefix:
        shared = _to_members(asked.view(rows, shared_heads, each, size), cache.members)
        prefix_scores = torch.matmul(shared, cache.shared.keys[layer].transpose(2, 3))
        scores = torch.cat([_to_rows(prefix_scores, rows, each), scores], dim=3)
    weights = torch.softmax(scores, dim=3, dtype=torch.float32).to(query.dtype)
    own_weights = weights[:, :, :, prefix:].reshape(flat, each, columns)
    out = torch.bmm(own_weights, own_values.reshape(flat, columns, -1)).view(rows, shared_heads, each, -1)
    if prefix:
        prefix_weights = _to_members(weights[:, :, :, :prefix], cache.members)
        out = out + _to_rows(torch.matmul(prefix_weights, cache.shared.values[layer]), rows, each)
    return out.view(rows, heads, tokens, -1)


def _hide(scores: Tensor, cache: RowCache) -> Tensor:
    """Set the scores [rows, shared heads, groups, tokens, columns] of what a token may not see to minus infinity."""
    if scores.shape[3] == 1:
        hidden = None if cache.padding is None else cache.padding[..., : scores.shape[4]].unsqueeze(1)
    else:
        hidden = cache.hidden
    return scores if hidden is None else scores.masked_fill_(hidden, float("-inf"))


def _to_members(rows: Tensor, members: int) -> Tensor:
    """[members * width, heads, each, n] -> [members, heads, width * each, n]."""
    _, heads, each, n = rows.shape
    return rows.view(members, -1, heads, each, n).transpose(1, 2).reshape(members, heads, -1, n)


def _to_rows(members: Tensor, rows: int, each: int) -> Tensor:
    """The inverse of `_to_members`."""
    count, heads, _, n = members.shape
    return members.view(count, heads, -1, each, n).transpose(1, 2).reshape(rows, heads, each, n)


def _repeat(tensor: Tensor, groups: int) -> Tensor:
    return tensor.repeat_interleave(groups, dim=1) if groups > 1 else tensor


def register() -> None:
    """Make `attn_implementation="broadreach"` known to Transformers; without a mask function of its own, so models
    build no masks: the cache knows what each row may see."""
    AttentionInterface.register(NAME, attend)


register()
