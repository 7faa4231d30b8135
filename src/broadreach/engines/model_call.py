"""One forward pass of a Transformers model, whatever it calls its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from broadreach.engines.runner import Tokens


class ModelCall:
    """Calls a model with a cache."""

    def __init__(self, model: nn.Module) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._model: Any = cast(Any, model)
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"  # from Transformers 5.24 on, before
        self._keeps_logits = "logits_to_keep" in parameters
        self.takes_positions = "position_ids" in parameters
        self.config = self._model.config
        text: Any = self.config.get_text_config()
        self.layers: int = text.num_hidden_layers
        self.vocabulary: int = text.vocab_size
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
        if self.takes_positions:
            arguments["position_ids"] = positions
        if mask is not None:
            arguments["attention_mask"] = mask
        logits: Tensor = self._model(ids, **arguments).logits
        return logits[:, -last:]


def left_padded(prompts: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
    """Token ids [prompts, longest] and how many leading columns of each are padding (filled with its first token)."""
    longest = max(len(prompt) for prompt in prompts)
    pad = [longest - len(prompt) for prompt in prompts]
    ids = torch.tensor([prompt[:1] * missing + prompt for missing, prompt in zip(pad, prompts, strict=True)])
    return ids, torch.tensor(pad)
