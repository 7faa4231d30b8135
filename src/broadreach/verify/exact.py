"""Family `exact`: the whole final text is the answer."""

from __future__ import annotations

import unicodedata

from broadreach.verify.extraction import Extraction, failure, final_text


def extract_exact(response: str) -> Extraction:
    """The stripped text after the reasoning block."""
    text = final_text(response)
    if text is None:
        return failure("reasoning never closed")
    payload = text.strip()
    return Extraction(payload) if payload else failure("empty text")


def exact_key(payload: str) -> str | None:
    """Composed Unicode, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFC", payload).split()) or None


def exact_equal(payload: str, gold: str) -> bool:
    """Whether the two texts are the same but for white space and Unicode composition."""
    return exact_key(payload) == exact_key(gold)
