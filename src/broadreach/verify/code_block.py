"""Exactly one closed Python block, found by a line scanner for CommonMark fences (verifiers.md, rule 2, rows 59-61).

Source: CommonMark 0.31, section 4.5: up to three spaces, a run of three or more backticks or tildes, closed by a run
of the same character at least as long; no backtick in the info string of a backtick fence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from broadreach.verify.extraction import Extraction, failure, final_text

FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})")
PYTHON_NAMES = frozenset({"python", "py", "python3"})


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    language: str
    """First word of the info string, case-folded."""
    code: str
    closed: bool


def fenced_blocks(text: str) -> list[Block]:
    """All fenced blocks of a text, in order."""
    blocks: list[Block] = []
    lines: list[str] = []
    opening: tuple[int, str, str] | None = None
    for line in text.split("\n"):
        match = FENCE.match(line)
        info = "" if match is None else line[match.end() :].removesuffix("\r").strip(" \t")
        if opening is None:
            if match is not None and not (match.group(2)[0] == "`" and "`" in info):
                words = info.split()
                opening = (len(match.group(1)), match.group(2), words[0].casefold() if words else "")
                lines = []
            continue
        indent, run, language = opening
        if match is not None and not info and match.group(2)[0] == run[0] and len(match.group(2)) >= len(run):
            blocks.append(Block(language, _joined(lines), closed=True))
            opening = None
        else:
            lines.append(_without_indent(line.removesuffix("\r"), indent))
    if opening is not None:
        blocks.append(Block(opening[2], _joined(lines), closed=False))
    return blocks


def _without_indent(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" "))) :]


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + ("\n" if lines else "")


def extract_python_block(response: str) -> Extraction:
    """The code of the only Python block after the reasoning; blocks in other languages do not count."""
    text = final_text(response)
    if text is None:
        return failure("reasoning never closed")
    blocks = [block for block in fenced_blocks(text) if block.language in PYTHON_NAMES]
    if len(blocks) != 1:
        return failure("no Python block" if not blocks else "more than one Python block")
    return Extraction(blocks[0].code) if blocks[0].closed else failure("Python block never closed")
