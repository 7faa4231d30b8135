"""Which runner serves a model."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import nn

from broadreach.engines import attention
from broadreach.engines.cache import PrefixCache
from broadreach.engines.model_call import ModelCall
from broadreach.engines.shared_prefix import SharedPrefixRunner
from broadreach.engines.stock import StockRunner
from broadreach.types import UserError


def choose_runner(model: nn.Module, members: int = 1) -> SharedPrefixRunner | StockRunner:
    """The fast runner when the model's attention is plain causal attention, else the general one; UserError for none.

    Decided by one tiny forward pass through our attention, which notes what the model asks of it.
    """
    if not hasattr(cast(Any, model).config.get_text_config(), "num_attention_heads"):
        raise UserError(
            f"{type(model).__name__} is a purely recurrent model, whose rows cannot be padded to one length;"
            " use a model with attention layers"
        )
    before = cast(Any, model).config._attn_implementation
    if before == attention.NAME or _plain_attention(model, members):
        return SharedPrefixRunner(model, members)
    cast(Any, model).set_attn_implementation(before)
    return StockRunner(model, members)


def _plain_attention(model: nn.Module, members: int) -> bool:
    if not getattr(model, "_supports_attention_backend", False):
        return False
    config = cast(Any, model).config.get_text_config()
    if set(getattr(config, "layer_types", None) or ["full_attention"]) != {"full_attention"}:
        return False
    call = ModelCall(model)
    if not call.takes_positions:
        return False
    cast(Any, model).set_attn_implementation(attention.NAME)
    probe = torch.full((members, 2), 1 if config.pad_token_id == 0 else 0)
    cache = PrefixCache(call.layers)
    with torch.inference_mode(), attention.recording_unsupported() as found, attention.reading(cache):
        try:
            call(probe, torch.arange(2).expand(members, -1), cache, last=1)
        except (AttributeError, TypeError, RuntimeError, KeyError, IndexError):
            return False
    return not found and all(layer.is_initialized for layer in cache.layers)
