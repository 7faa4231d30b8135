r"""The last `\boxed{...}` of a response, found by counting braces (verifiers.md, rule 2 and rows 29-34)."""

from __future__ import annotations

import re

from broadreach.verify.extraction import Extraction, failure, final_text

BOX_COMMAND = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
BARE_PAYLOAD = re.compile(
    r"""(?:[-+−]?(?:\d[\d,]*\.?\d*|\.\d+)(?:/\d+)?   # \boxed 5, \boxed -3/4
    |\\[A-Za-z]+(?:\{[^{}]*\}|\d)*                    # \boxed \frac{1}{2}, \boxed\pi
    |[A-Za-z](?![A-Za-z])(?=\s*(?:[$.,;:)\\]|$))      # \boxed C at the end of a formula or sentence
    )""",
    re.VERBOSE,
)
MAX_NESTED_BOXES = 50


def closing_brace(text: str, opening: int) -> int | None:
    r"""Index of the brace that closes the one at `opening`; a backslash hides the character after it."""
    depth, index = 0, opening
    while index < len(text):
        character = text[index]
        if character == "\\":
            index += 2
            continue
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return index
        index += 1
    return None


def last_box(text: str) -> Extraction:
    """The payload of the last box of `text`; empty and unclosed boxes are failures, mentions are not boxes."""
    found = failure("no box")
    position = 0
    while (command := BOX_COMMAND.search(text, position)) is not None:
        position = command.end()
        if text[position : position + 1] == "{":
            end = closing_brace(text, position)
            if end is None:
                found = failure("box never closed")
                position += 1
                continue
            payload = unwrap_boxes(text[position + 1 : end])
            found = Extraction(payload) if payload else failure("empty box")
            position = end + 1
        elif (bare := BARE_PAYLOAD.match(text, position)) is not None:
            found = Extraction(bare.group().rstrip(".,"))
            position = bare.end()
    return found


def unwrap_boxes(payload: str) -> str:
    r"""The payload without the boxes inside it: `\boxed{x=\boxed{5}}` holds `x=5`."""
    for _ in range(MAX_NESTED_BOXES):
        command = BOX_COMMAND.search(payload)
        if command is None or payload[command.end() : command.end() + 1] != "{":
            break
        end = closing_brace(payload, command.end())
        if end is None:
            break
        payload = payload[: command.start()] + payload[command.end() + 1 : end] + payload[end + 1 :]
    return payload.strip()


def extract_boxed(response: str) -> Extraction:
    """The last box after the reasoning block."""
    text = final_text(response)
    return failure("reasoning never closed") if text is None else last_box(text)
