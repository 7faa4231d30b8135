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
BRACES = re.compile(r"[\\{}]")


def brace_pairs(text: str, start: int = 0) -> dict[int, int]:
    r"""Opening brace -> the brace that closes it, in one pass from `start`; a backslash hides the next character."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    hidden = -1
    for match in BRACES.finditer(text, start):
        place = match.start()
        if place == hidden:
            continue
        if text[place] == "\\":
            hidden = place + 1
        elif text[place] == "{":
            opened.append(place)
        elif opened:
            pairs[opened.pop()] = place
    return pairs


def last_box(text: str) -> Extraction:
    """The payload of the last box of `text`; empty and unclosed boxes are failures, mentions are not boxes."""
    found: Extraction | tuple[int, int] = failure("no box")
    pairs: dict[int, int] | None = None
    position = 0
    while (command := BOX_COMMAND.search(text, position)) is not None:
        position = command.end()
        if text[position : position + 1] == "{":
            pairs = brace_pairs(text, position) if pairs is None else pairs
            end = pairs.get(position)
            if end is None:
                found = failure("box never closed")
                position += 1
            else:
                found, position = (position + 1, end), end + 1
        elif (bare := BARE_PAYLOAD.match(text, position)) is not None:
            found = Extraction(bare.group().rstrip(".,"))
            position = bare.end()
    if isinstance(found, Extraction):
        return found
    payload = unwrap_boxes(text[found[0] : found[1]])
    return Extraction(payload) if payload else failure("empty box")


def unwrap_boxes(payload: str) -> str:
    r"""The payload without the boxes inside it: `\boxed{x=\boxed{5}}` holds `x=5`, and `4\boxed{2}` is no 42."""
    if BOX_COMMAND.search(payload) is None:
        return payload.strip()
    pairs = brace_pairs(payload)
    cuts: list[tuple[int, int]] = []
    for command in BOX_COMMAND.finditer(payload):
        if command.end() in pairs:
            end = pairs[command.end()]
            cuts += [(command.start(), command.end() + 1), (end, end + 1)]
    pieces: list[str] = []
    position = 0
    for start, end in sorted(cuts):
        pieces.append(payload[position:start])
        position = end
    pieces.append(payload[position:])
    text = ""
    for piece in filter(None, pieces):
        text += " " + piece if text[-1:].isalnum() and piece[0].isalnum() else piece
    return text.strip()


def extract_boxed(response: str) -> Extraction:
    """The last box after the reasoning block."""
    text = final_text(response)
    return failure("reasoning never closed") if text is None else last_box(text)
