"""Kinds of tensor, by canonical name: the rows of every per-kind table."""

from __future__ import annotations

import re

_KINDS = (
    ("head", re.compile(r"(^|\.)(lm_head|embed_out|output_projection)\.")),
    ("norm", re.compile(r"(norm|ln_\w+|layer_norm|layernorm|\bln\d*)\w*\.(weight|bias)$", re.IGNORECASE)),
    ("bias", re.compile(r"\.bias$")),
    ("embedding", re.compile(r"(embed|wte|wpe|word_embeddings)")),
    ("attention_q", re.compile(r"(q_proj|query)\.")),
    ("attention_k", re.compile(r"(k_proj|key)\.")),
    ("attention_v", re.compile(r"(v_proj|value)\.")),
    ("attention_o", re.compile(r"(o_proj|attn\.c_proj|attention\.dense|out_proj)\.")),
    ("attention_qkv", re.compile(r"(c_attn|qkv_proj|query_key_value)\.")),
    ("mlp", re.compile(r"(mlp|feed_forward|ffn)\.")),
)


def tensor_kind(name: str) -> str:
    """norm, bias, attention_q/k/v/o (or the fused attention_qkv), mlp, embedding, head, or other."""
    return next((kind for kind, pattern in _KINDS if pattern.search(name)), "other")
