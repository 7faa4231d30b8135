"""Exactly one `<answer>...</answer>`, and HotpotQA's official comparison (verifiers.md, rule 2 and section 2).

Source of the normal form, exact match and F1: hotpot_evaluate_v1.py of hotpotqa/hotpot.
"""

from __future__ import annotations

import re
import string
from collections import Counter

from broadreach.verify.boxed import BOX_COMMAND, unwrap_boxes
from broadreach.verify.extraction import Extraction, failure, final_text

TAG_OPEN, TAG_CLOSE = "<answer>", "</answer>"
ARTICLES = re.compile(r"\b(?:a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
WHOLE_ANSWERS = frozenset({"yes", "no", "noanswer"})


def extract_answer_tag(response: str) -> Extraction:
    """The text inside the only pair of tags; a box around all of it is unwrapped (row 33)."""
    text = final_text(response)
    if text is None:
        return failure("reasoning never closed")
    if text.count(TAG_OPEN) != 1 or text.count(TAG_CLOSE) != 1:
        return failure("not exactly one answer tag")
    start, end = text.index(TAG_OPEN) + len(TAG_OPEN), text.index(TAG_CLOSE)
    payload = text[start:end].strip() if start <= end else ""
    if BOX_COMMAND.match(payload):
        payload = unwrap_boxes(payload)
    return Extraction(payload) if payload else failure("empty answer tag")


def normalise(text: str) -> str:
    """HotpotQA's normal form: lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(NO_PUNCTUATION)).split())


def answer_key(payload: str) -> str | None:
    """The normal form, or the unstripped lower-case form where nothing would be left ("The The", "!!!")."""
    return normalise(payload) or " ".join(payload.lower().split()) or None


def exact_match(payload: str, gold: str) -> bool:
    """HotpotQA's EM, guarded against golds whose normal form is empty."""
    normal_gold = normalise(gold)
    if not normal_gold:
        return " ".join(payload.lower().split()) == " ".join(gold.lower().split())
    return normalise(payload) == normal_gold


def f1(payload: str, gold: str) -> float:
    """HotpotQA's token F1 in [0, 1]; yes and no only match themselves."""
    predicted, wanted = answer_key(payload) or "", answer_key(gold) or ""
    if predicted != wanted and WHOLE_ANSWERS & {predicted, wanted}:
        return 0.0
    predicted_tokens, wanted_tokens = predicted.split(), wanted.split()
    shared = sum((Counter(predicted_tokens) & Counter(wanted_tokens)).values())
    return 2 * shared / (len(predicted_tokens) + len(wanted_tokens)) if shared else 0.0
