"""What a forgiving reader would take for the answer: logged beside the strict verdict, never rewarded.

It tells format from ability. Each function gives a payload for its family's comparison, or None.
"""

from __future__ import annotations

import re

from broadreach.verify.answer_tag import TAG_CLOSE, TAG_OPEN
from broadreach.verify.boxed import last_box
from broadreach.verify.code_block import PYTHON_NAMES, fenced_blocks
from broadreach.verify.extraction import THINK_CLOSE

MAX_LINE = 300
ANSWER_PHRASE = re.compile(r"(?:answer\s*+(?:is|are|=|:)|####)\s*+:?\s*+(\S[^\n]*)", re.IGNORECASE)
NUMBER = re.compile(r"(?<![\w.])[-−]?\$?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?")
LETTER = re.compile(r"(?<![A-Za-z'])\(?([A-Z])\)?(?![A-Za-z'])")
ARITHMETIC = re.compile(r"[-+*/()\d\s×÷]+")
DIGIT = re.compile(r"\d")


def _visible(response: str) -> str:
    return response[response.rfind(THINK_CLOSE) + len(THINK_CLOSE) :] if THINK_CLOSE in response else response


def _after_phrase(text: str) -> str | None:
    phrases = ANSWER_PHRASE.findall(text)
    if not phrases:
        return None
    answer: str = phrases[-1][:MAX_LINE].strip().strip("*$ ").rstrip(".!").strip("*$ ")
    return answer or None


def _tagged(text: str) -> str | None:
    start = text.rfind(TAG_OPEN)
    if start < 0:
        return None
    return text[start + len(TAG_OPEN) :].split(TAG_CLOSE)[0].strip()[: 10 * MAX_LINE] or None


def lenient_math(response: str) -> str | None:
    """A box anywhere, else what follows "answer is", else the last number."""
    text = _visible(response)
    if (box := last_box(text).payload) is not None:
        return box
    phrase = _after_phrase(text)
    if phrase is not None:
        numbers = NUMBER.findall(phrase)
        words = re.sub(r"\\[A-Za-z]+", "", phrase)
        return numbers[-1] if numbers and re.search(r"[A-Za-z]{3}", words) else phrase
    numbers = NUMBER.findall(text)
    return numbers[-1] if numbers else None


def lenient_choice(response: str) -> str | None:
    """A box anywhere, else the first capital letter after "answer is", else the last one standing alone."""
    text = _visible(response)
    if (box := last_box(text).payload) is not None:
        return box
    phrase = _after_phrase(text)
    if phrase is not None and (letter := LETTER.search(phrase)) is not None:
        return letter.group(1)
    letters = [letter for letter in LETTER.findall(text) if letter != "I"]
    return letters[-1] if letters else None


def lenient_answer_tag(response: str) -> str | None:
    """The last tag even if unclosed or repeated, else what follows "answer is", else the last line."""
    text = _visible(response)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _tagged(text) or _after_phrase(text) or (lines[-1][:MAX_LINE] if lines else None)


def lenient_countdown(response: str) -> str | None:
    """The last tag, else a box, else the last arithmetic of the text; other signs and a result are forgiven."""
    text = _visible(response)
    found = _tagged(text) or last_box(text).payload
    if found is None:
        found = _last_arithmetic(text)
    if found is None:
        return None
    found = (
        found.replace("×", "*").replace("÷", "/").replace(r"\times", "*").replace(r"\cdot", "*").replace(r"\div", "/")
    )
    sides = [side.strip() for side in found.split("=")]
    return max(sides, key=len)


def _last_arithmetic(text: str) -> str | None:
    """The last run of digits, signs and brackets in which an operator comes after a digit."""
    found = None
    for run in map(re.Match.group, ARITHMETIC.finditer(text)):
        digit = DIGIT.search(run)
        if digit is not None and max(map(run.rfind, "-+*/×÷")) > digit.start():
            found = run.strip()
    return found


def lenient_code(response: str) -> str | None:
    """The last Python block, closed or not, else the last of any language, else the text if it defines a function."""
    blocks = fenced_blocks(_visible(response))
    python = [block for block in blocks if block.language in PYTHON_NAMES]
    if python or blocks:
        return (python or blocks)[-1].code
    text = _visible(response)
    return text if re.search(r"^def \w+\(", text, re.MULTILINE) else None


def lenient_exact(response: str) -> str | None:
    """What follows "answer is", else the last line, without quotes and the final stop."""
    lines = [line.strip() for line in _visible(response).splitlines() if line.strip()]
    found = _after_phrase(_visible(response)) or (lines[-1] if lines else None)
    return found.strip("\"'`* ").rstrip(".") if found else None
