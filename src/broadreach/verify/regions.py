r"""Intervals, inequalities and unions as one thing: `x < 4`, `(-\infty, 4)` and `4 > x` are the same region."""

from __future__ import annotations

from dataclasses import dataclass

from broadreach.verify.math_value import RELATIONS, Value, is_name

MINUS_INFINITY, INFINITY = Value("infinity", r"-\infty"), Value("infinity", r"\infty")


@dataclass(frozen=True, slots=True)
class Piece:
    """One interval; a point is `[a, a]`."""

    low: Value
    high: Value
    closed: str
    """Its two brackets, `[` and `]` where the end belongs to it."""


@dataclass(frozen=True, slots=True)
class Region:
    """A union of intervals, and the variable it bounds where one is named."""

    pieces: tuple[Piece, ...]
    variable: str = ""


def as_region(value: Value) -> Region | None:
    """The region a value describes, or None where it is none."""
    match value.kind:
        case "tuple" if len(value.items) == 2 and value.marks[0] in "([":
            return Region((Piece(*value.items, value.marks),))
        case "set":
            return Region(tuple(Piece(item, item, "[]") for item in value.items))
        case "relation":
            return _from_relation(value)
        case "union":
            parts = [as_region(item) for item in value.items]
            variables = {part.variable for part in parts if part is not None and part.variable}
            if any(part is None for part in parts) or len(variables) > 1:
                return None
            return Region(tuple(piece for part in parts if part for piece in part.pieces), "".join(variables))
    return None


def _from_relation(value: Value) -> Region | None:
    relations, sides = value.marks.split(), value.items
    names = [index for index, side in enumerate(sides) if side.kind == "expression" and is_name(side.text)]
    if len(sides) == 2 and len(names) == 1:
        relation = relations[0] if names == [0] else RELATIONS[relations[0]]
        return _half_line(relation, sides[names[0]].text, sides[1 - names[0]])
    if len(sides) == 3 and names == [1]:
        if set(relations) <= {">", r"\ge"}:
            relations, sides = [RELATIONS[relation] for relation in reversed(relations)], sides[::-1]
        if set(relations) <= {"<", r"\le"}:
            marks = ("[" if relations[0] == r"\le" else "(") + ("]" if relations[1] == r"\le" else ")")
            return Region((Piece(sides[0], sides[2], marks),), sides[1].text)
    return None


def _half_line(relation: str, variable: str, bound: Value) -> Region:
    match relation:
        case "<":
            pieces: tuple[Piece, ...] = (Piece(MINUS_INFINITY, bound, "()"),)
        case r"\le":
            pieces = (Piece(MINUS_INFINITY, bound, "(]"),)
        case ">":
            pieces = (Piece(bound, INFINITY, "()"),)
        case r"\ge":
            pieces = (Piece(bound, INFINITY, "[)"),)
        case _:
            pieces = (Piece(MINUS_INFINITY, bound, "()"), Piece(bound, INFINITY, "()"))
    return Region(pieces, variable)
