"""From token ids to the responses that the rest of the program reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broadreach.engines.runner import Tokens
from broadreach.types import Request, Response


def to_responses(
    tokenizer: Any, requests: Sequence[Request], answers: Sequence[Tokens], ends: frozenset[int]
) -> list[Response]:
    """Text without special tokens, and why each response ended ("stop": at an end token; "length": at the limit)."""
    if not answers:
        return []
    texts = tokenizer.batch_decode([list(tokens) for tokens in answers], skip_special_tokens=True)
    return [
        Response(
            text=text,
            tokens=tokens,
            finish_reason="stop" if tokens and tokens[-1] in ends else "length",
            prompt_tokens=len(request.prompt),
        )
        for request, tokens, text in zip(requests, answers, texts, strict=True)
    ]
