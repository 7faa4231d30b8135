r"""Multiple choice: one letter inside `\boxed{}`, alone or with its own option's text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

LETTER = re.compile(r"[(\[]?\s*([A-Za-z])\s*[)\]]?\s*[.):]?")
LETTER_AND_TEXT = re.compile(r"[(\[]?\s*([A-Za-z])\s*(?:[.):\]]|[)\]][.:]?|\s-)\s*(\S.*)", re.DOTALL)
WRAPPERS = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathsf|mathit|mbox|rm|bf|operatorname)\s*\{([^{}]*)\}"
)
OPTION_WORD = re.compile(r"^(?:the\s+)?(?:option|answer|choice)(?:\s+is)?\s*:?\s+(?=\S)", re.IGNORECASE)


def plain_text(payload: str) -> str:
    """The payload without font commands, dollar signs, bold marks and compatibility characters."""
    text = unicodedata.normalize("NFKC", payload)
    for _ in range(10):
        unwrapped = WRAPPERS.sub(r" \1 ", text)
        if unwrapped == text:
            break
        text = unwrapped
    text = re.sub(r"\\[,;:! ()\[\]]|[$*`~{}]|\\left|\\right", " ", text)
    return " ".join(text.split())


def chosen_letter(payload: str, options: Mapping[str, str]) -> str | None:
    """The upper-case letter of the option the payload names, or None where it names none or more than one.

    Accepted: the letter alone (brackets, full stop and font commands do not matter), the letter with its own
    option's text, or the text of exactly one option. Without `options` any single letter counts.
    """
    text = plain_text(payload)
    letters = {label.upper(): _folded(option) for label, option in options.items()}
    single = LETTER.fullmatch(text) or LETTER.fullmatch(OPTION_WORD.sub("", text))
    if single is not None:
        letter = single.group(1).upper()
        return letter if not letters or letter in letters else None
    both = LETTER_AND_TEXT.fullmatch(text)
    if both is not None:
        letter = both.group(1).upper()
        if not letters or letters.get(letter) == _folded(both.group(2)):
            return letter
    named = [letter for letter, option in letters.items() if option and option == _folded(text)]
    return named[0] if len(named) == 1 else None


def _folded(text: str) -> str:
    return plain_text(text).casefold().strip(" .")


def choice_equal(payload: str, gold: str, options: Mapping[str, str]) -> bool:
    """Whether the payload names the gold letter."""
    return chosen_letter(payload, options) == gold.strip().upper()
