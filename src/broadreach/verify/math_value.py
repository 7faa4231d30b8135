"""The shape of a mathematical answer: number, word, expression, pair, set, list, union, matrix, equation, relation.

Shape is decided here, by brackets and separators, so that the symbolic worker only ever sees single expressions:
a set never equals a pair, half a list never equals the whole, and brackets never vanish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Literal

from broadreach.verify.math_text import canonical, tokens_of
from broadreach.verify.rationals import TooLargeError, read_rational
from broadreach.verify.units import split_unit

Kind = Literal[
    "number", "word", "expression", "based", "infinity", "tuple", "set", "list", "union", "matrix", "equation",
    "relation", "alternatives", "refused",
]  # fmt: skip

MAX_LENGTH = 2_000
MAX_NESTING = 60
MAX_LARGE_LENGTH = 20_000
OPENING, CLOSING = (
    frozenset({"(", "[", "{", r"\{", r"\lfloor", r"\lceil", r"\langle", r"\begin"}),
    frozenset({")", "]", "}", r"\}", r"\rfloor", r"\rceil", r"\rangle", r"\end"}),
)
BRACKETS, PARTNERS = re.compile(r"[{}()\[\]]"), {"}": "{", ")": "(", "]": "["}
RELATIONS = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le", r"\ne": r"\ne"}
"""Each relation and its mirror image."""
NAME = re.compile(
    r"(?:\\(?:angle|overline|vec|hat|bar|text|mathbb|mathcal|triangle|max|min|measuredangle)(?![A-Za-z])"
    r"|\\(?:alpha|beta|gamma|delta|theta|lambda|mu|phi|omega|rho|sigma|tau|ell|Delta|Omega)(?![A-Za-z])"
    r"|_\{[^{}]*\}|\([A-Za-z0-9, ]*\)|[A-Za-z{}|' ])+"
)
WORDS = re.compile(r"\\text\{[^{}]*[A-Za-z][^{}]*[A-Za-z][^{}]*\}|(?<![A-Za-z\\])[A-Za-z]{4,}|[^\x00-\x7f]")
_SHORT = """yes no odd all any dne one two six ten red win tie mon tue wed thu fri sat sun
    jan feb mar apr may jun jul aug sep oct nov dec"""
SHORT_WORDS = frozenset(_SHORT.split())
"""Words of three letters or fewer that are no products."""
TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])(?!\^\{-1\})")
DEGREES = re.compile(r"(\d+(?:\.\d+)?)\^\{\\circ\}")
BASED = re.compile(r"(?:\\text\{)?([A-Za-z]*\d[0-9A-Za-z]*)\}?_\{(?:\\text\{)?(\w+)\}?\}")
BASE_WORDS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"}


@dataclass(frozen=True, slots=True)
class Value:
    """One answer, or one part of an answer."""

    kind: Kind
    text: str
    """Canonical text without its unit; equal texts are equal answers."""
    items: tuple[Value, ...] = ()
    """Parts of a pair, set, list, union or matrix row; sides of an equation or relation."""
    number: Fraction | None = None
    unit: str | None = None
    marks: str = ""
    """The two brackets of a pair or interval; the relations of a chain; the shape of a matrix; a base."""


@lru_cache(maxsize=65_536)
def read_value(text: str, thousands: bool = True) -> Value:
    """The shape of an answer as written by a data set or a model; never raises."""
    if len(text) > MAX_LARGE_LENGTH:
        return Value("refused", text)
    spelled = canonical(text, thousands) if nesting(text) <= MAX_NESTING else text
    if len(spelled) > MAX_LENGTH and not spelled.lstrip("+-").isdigit():
        return Value("refused", spelled)
    if nesting(spelled) > MAX_NESTING:
        return Value("refused", spelled)
    return _read(tokens_of(spelled))


def nesting(text: str) -> int:
    """How deep brackets of any kind stand in each other; one that closes nothing opens no room for others."""
    depths = dict.fromkeys("{([", 0)
    depth = deepest = 0
    for bracket in BRACKETS.findall(text):
        if bracket in depths:
            depths[bracket] += 1
            depth += 1
            deepest = max(deepest, depth)
        elif depths[PARTNERS[bracket]]:
            depths[PARTNERS[bracket]] -= 1
            depth -= 1
    return deepest


def split_top(tokens: Sequence[str], separators: frozenset[str]) -> tuple[list[list[str]], list[str]]:
    """The parts between separators outside all brackets, and the separators found."""
    parts: list[list[str]] = [[]]
    found: list[str] = []
    depth = 0
    for token in tokens:
        if depth == 0 and token in separators:
            parts.append([])
            found.append(token)
            continue
        depth += (token in OPENING) - (token in CLOSING)
        parts[-1].append(token)
    return parts, found


def _trim(tokens: Sequence[str]) -> list[str]:
    tokens = list(tokens)
    while tokens and tokens[0] == " ":
        tokens.pop(0)
    while tokens and tokens[-1] == " ":
        tokens.pop()
    while len(tokens) > 2 and tokens[0] == "{" and _matching(tokens) == len(tokens) - 1:
        tokens = _trim(tokens[1:-1])
    return tokens


def _matching(tokens: Sequence[str]) -> int:
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token in OPENING) - (token in CLOSING)
        if depth == 0:
            return index
    return len(tokens)


def _read(tokens: Sequence[str]) -> Value:
    tokens = _trim(tokens)
    text = "".join(tokens)
    parts, found = split_top(tokens, frozenset({r"\ALT"}))
    if found:
        return Value("alternatives", text, tuple(map(_read, filter(_trim, parts))))
    parts, found = split_top(tokens, frozenset({",", ";", r"\AND", r"\OR"}))
    if found and len(filled := [part for part in parts if _trim(part)]) > 0:
        values = tuple(map(_read, filled))
        if len(values) > 1 and set(found) == {r"\OR"} and all(value.kind == "relation" for value in values):
            return Value("union", text, values)
        return _as_list(text, values)
    parts, found = split_top(tokens, frozenset({r"\in"}))
    if len(found) == 1 and all(is_name("".join(part)) for part in _unbracketed(parts[0])):
        return _read(parts[1])
    parts, found = split_top(tokens, frozenset({r"\approx"}))
    if found and _trim(parts[0]):
        return _read(parts[1] if is_name("".join(parts[0])) else parts[0])
    parts, found = split_top(tokens, frozenset({"=", *RELATIONS}))
    if found and all(map(_trim, parts)):
        kind: Kind = "equation" if set(found) == {"="} else "relation"
        return Value(kind, text, tuple(map(_read, parts)), marks=" ".join(found))
    parts, found = split_top(tokens, frozenset({r"\cup"}))
    if found and all(map(_trim, parts)):
        return Value("union", text, tuple(map(_read, parts)))
    parts, found = split_top(tokens, frozenset({":", r"\colon"}))
    if found and all(map(_trim, parts)):
        return Value("tuple", text, tuple(map(_read, parts)), marks="::")
    return _read_bracketed(tokens, text) or _read_plus_minus(tokens, text) or _read_atom(text)


def _unbracketed(tokens: list[str]) -> list[list[str]]:
    """The parts of `(x, y)`, or the tokens as they are."""
    if tokens and tokens[0] == "(" and _matching(tokens) == len(tokens) - 1:
        return split_top(tokens[1:-1], frozenset({","}))[0]
    return [tokens]


def _as_list(text: str, values: tuple[Value, ...]) -> Value:
    flat = tuple(part for value in values for part in (value.items if value.kind == "list" else (value,)))
    return flat[0] if len(flat) == 1 else Value("list", text, flat)


def _read_bracketed(tokens: list[str], text: str) -> Value | None:
    if len(tokens) < 3 or tokens[0] not in OPENING or _matching(tokens) != len(tokens) - 1:
        return _read_matrix(tokens, text)
    opening, closing, inner = tokens[0], tokens[-1], tokens[1:-1]
    parts, found = split_top(inner, frozenset({",", ";"}))
    if opening == r"\{" and closing in (r"\}", "}"):
        if split_top(inner, frozenset({r"\mid", "|", ":"}))[1]:
            return None
        return Value("set", text, _as_list(text, tuple(map(_read, filter(_trim, parts)))).items or (_read(inner),))
    if opening in "([" and closing in ")]":
        if not found:
            return _read(inner) if opening + closing in ("()", "[]") and _trim(inner) else None
        if all(map(_trim, parts)):
            return Value("tuple", text, tuple(map(_read, parts)), marks=opening + closing)
    return None


def _read_matrix(tokens: list[str], text: str) -> Value | None:
    begin, end = r"\begin{pmatrix}", r"\end{pmatrix}"
    if not (text.startswith(begin) and text.endswith(end)) or text.count(begin) != 1:
        return None
    inner = tokens_of(text[len(begin) : -len(end)])
    rows = [row for row in split_top(inner, frozenset({r"\\"}))[0] if _trim(row)]
    cells = [split_top(row, frozenset({"&"}))[0] for row in rows]
    values = tuple(_read(cell) for row in cells for cell in row)
    return Value("matrix", text, values, marks="x".join(str(len(row)) for row in cells))


def _read_plus_minus(tokens: list[str], text: str) -> Value | None:
    places = [index for index, token in enumerate(tokens) if token in (r"\pm", r"\mp")]
    if not places or len(places) > 3:
        return None
    linked = any(tokens[place] == r"\mp" for place in places)
    signs = ["+" * len(places), "-" * len(places)] if linked else list(map("".join, product("+-", repeat=len(places))))
    values = []
    for choice in signs:
        chosen = list(tokens)
        for place, sign in zip(places, choice, strict=True):
            flipped = tokens[place] == r"\mp"
            chosen[place] = ("-" if sign == "+" else "+") if flipped else sign
        values.append(_read(chosen[1:] if chosen[0] == "+" else chosen))
    return _as_list(text, tuple(values))


def _read_atom(text: str) -> Value:
    if text.casefold() in SHORT_WORDS:
        return Value("word", text.casefold())
    if TRIGONOMETRIC.search(text) is not None:
        text = DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    if (based := BASED.fullmatch(text)) is not None:
        base = BASE_WORDS.get(based.group(2), based.group(2))
        if base.isdigit():
            return Value("based", text, marks=f"{based.group(1).upper().lstrip('0') or '0'}_{base}")
    bare, unit = split_unit(text)
    if bare != text:
        inner = _read(tokens_of(bare))
        return replace(inner, unit=unit if inner.unit is None else inner.unit)
    if text == r"\mathbb{R}":
        return Value("union", text, (_read(tokens_of(r"(-\infty,\infty)")),))
    if text.lstrip("+-") == r"\infty":
        return Value("infinity", r"-\infty" if text.startswith("-") else r"\infty")
    try:
        number = read_rational(text)
    except TooLargeError:
        return Value("refused", text)
    if number is not None:
        return Value("number", text, number=number)
    if WORDS.search(text) is not None:
        return Value("word", re.sub(r"\\text\{([^{}]*)\}", r"\1", text).casefold().rstrip("."))
    return Value("expression", text)


def is_name(text: str) -> bool:
    r"""Whether the text only names something (`x`, `f(x)`, `m_{\max}`, `\angle ABC`), so that `text = y` states y."""
    return NAME.fullmatch(text) is not None and re.search(r"[A-Za-z]", text) is not None
