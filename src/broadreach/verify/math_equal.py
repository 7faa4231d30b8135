"""Mathematical equivalence: exact string, then exact rationals, then a symbolic judge (verifiers.md, section 1).

The comparison walks the shapes of both answers and is three-valued: True, False, or None where only a symbolic judge
can tell. In the trainer's process the judge is `undecided`; in the killable child it is `symbolic.judge`.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from broadreach.verify.math_value import Value, is_name, read_value
from broadreach.verify.regions import as_region
from broadreach.verify.units import unit_name, units_conflict

MAX_LIST = 64
COMMAND = re.compile(r"\\[A-Za-z]+")
LETTERS = re.compile(r"[A-Za-z]+")
VARIABLE_LETTERS = frozenset(string.ascii_letters) - {"e", "i"}
MAX_KEY_BITS = 8_000


@dataclass(frozen=True, slots=True)
class MathOptions:
    """What the data set knows about its answers."""

    thousands: bool = True
    """Whether `343,512` is one number; False: a list of two."""
    ordered: bool = False
    """Whether a bare list keeps its order."""
    rel_tol: float | None = None
    """Relative tolerance of a numeric answer (Minerva: 1e-2); None is exact."""
    abs_tol: float | None = None
    """Absolute tolerance of a numeric answer (OlympiadBench's `error`)."""
    unit: str | None = None
    """The unit the question asked for, where the gold does not write it."""

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> MathOptions:
        """The options `thousands`, `ordered`, `float_rel_tol`, `float_abs_tol` and `unit` of a problem's data."""
        unit = data.get("unit")
        return cls(
            thousands=bool(data.get("thousands", True)),
            ordered=bool(data.get("ordered", False)),
            rel_tol=data.get("float_rel_tol"),
            abs_tol=data.get("float_abs_tol"),
            unit=unit_name(str(unit).replace("$", "").replace(" ", "")) if unit else None,
        )


Judge = Callable[[Value, Value, MathOptions], bool | None]
"""Whether gold and answer, two single expressions or equations, have the same value; None: cannot tell."""


def undecided(gold: Value, answer: Value, options: MathOptions) -> None:
    """The judge of the trainer's process: it never parses model text symbolically."""


def equivalent(gold: str, payload: str, options: MathOptions, judge: Judge = undecided) -> bool | None:
    """Whether the payload is worth the gold; None where the judge cannot tell. Never raises."""
    wanted = read_value(gold, options.thousands)
    given = read_value(payload, options.thousands)
    if wanted.text == given.text and not units_conflict(wanted.unit or options.unit, given.unit):
        return bool(wanted.text)
    if wanted.kind == "alternatives" or (wanted.kind == "equation" and not any(map(_variables, wanted.items))):
        return any_of(_compare(item, given, options, judge) for item in wanted.items)
    return _compare(wanted, given, options, judge)


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued conjunction; stops at the first False."""
    result: bool | None = True
    for verdict in verdicts:
        if verdict is False:
            return False
        if verdict is None:
            result = None
    return result


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued disjunction; stops at the first True."""
    result: bool | None = False
    for verdict in verdicts:
        if verdict is True:
            return True
        if verdict is None:
            result = None
    return result


def _compare(gold: Value, answer: Value, options: MathOptions, judge: Judge) -> bool | None:
    if gold.kind == "equation" or answer.kind == "equation":
        return _compare_equations(gold, answer, options, judge)
    if units_conflict(gold.unit or options.unit, answer.unit):
        return False
    if gold.text == answer.text and "refused" not in (gold.kind, answer.kind):
        return True
    if "relation" in (gold.kind, answer.kind) or "union" in (gold.kind, answer.kind):
        return _compare_regions(gold, answer, options, judge)
    if gold.kind in ("tuple", "set", "list", "matrix") or answer.kind in ("tuple", "set", "list", "matrix"):
        return _compare_collections(gold, answer, options, judge)
    return _compare_atoms(gold, answer, options, judge)


def _compare_atoms(gold: Value, answer: Value, options: MathOptions, judge: Judge) -> bool | None:
    if gold.number is not None and answer.number is not None:
        return numbers_equal(gold.number, answer.number, options)
    kinds = {gold.kind, answer.kind}
    if kinds == {"word", "expression"} and LETTERS.fullmatch(gold.text + answer.text) is not None:
        return gold.text.casefold() == answer.text.casefold()
    if kinds & {"word", "infinity", "refused", "alternatives"}:
        return False
    if "based" in kinds:
        return gold.marks == answer.marks
    if _variables(gold) != _variables(answer):
        return False
    return judge(gold, answer, options)


def numbers_equal(gold: Fraction, answer: Fraction, options: MathOptions) -> bool:
    """Exact equality, or the data set's own tolerance."""
    distance = abs(gold - answer)
    if distance == 0:
        return True
    if options.abs_tol is not None and distance <= Fraction(options.abs_tol):
        return True
    return options.rel_tol is not None and distance <= Fraction(options.rel_tol) * abs(gold)


def _variables(value: Value) -> frozenset[str]:
    r"""The letters that stand alone, but for the constants e and i (`\pi` and `\sqrt` are commands)."""
    return frozenset(COMMAND.sub("", value.text)) & VARIABLE_LETTERS


def _compare_equations(gold: Value, answer: Value, options: MathOptions, judge: Judge) -> bool | None:
    solved_gold, solved_answer = _solved(gold), _solved(answer)
    if gold.kind == answer.kind == "equation":
        if gold.text == answer.text:
            return True
        if solved_gold is not None and solved_answer is not None and gold.items[0].text == answer.items[0].text:
            return _compare(solved_gold, solved_answer, options, judge)
        if len(gold.items) != 2 or len(answer.items) != 2 or (solved_gold and solved_gold.kind != "expression"):
            return False
        if any(side.kind not in ("number", "expression") for side in (*gold.items, *answer.items)):
            return False
        return judge(gold, answer, options)
    if gold.kind == "equation":
        return False if solved_gold is None else _compare(solved_gold, answer, options, judge)
    if solved_answer is not None:
        return _compare(gold, solved_answer, options, judge)
    if any(_variables(side) or side.kind not in ("number", "expression") for side in answer.items):
        return False
    return all_of(_compare(gold, side, options, judge) for side in answer.items)


def _solved(value: Value) -> Value | None:
    """What a solved equation states: the right side of `x = 5`, the last of `AB = 3 + 4 = 7`."""
    if value.kind != "equation" or not is_name(value.items[0].text):
        return None
    return value.items[-1]


def _compare_regions(gold: Value, answer: Value, options: MathOptions, judge: Judge) -> bool | None:
    wanted, given = as_region(gold), as_region(answer)
    if wanted is None or given is None:
        if gold.kind == answer.kind == "relation":
            return judge(gold, answer, options)
        return False
    if wanted.variable and given.variable and wanted.variable != given.variable:
        return False
    same = [[p.closed == q.closed for q in given.pieces] for p in wanted.pieces]

    def ends(row: int, column: int) -> bool | None:
        if not same[row][column]:
            return False
        first, second = wanted.pieces[row], given.pieces[column]
        return all_of(_compare(a, b, options, judge) for a, b in ((first.low, second.low), (first.high, second.high)))

    return matching(len(wanted.pieces), len(given.pieces), ends)


def _compare_collections(gold: Value, answer: Value, options: MathOptions, judge: Judge) -> bool | None:
    """Pair, set, list or matrix: the gold's own brackets decide what counts (rule 4)."""

    def same(row: int, column: int) -> bool | None:
        return _compare(gold_items[row], answer_items[column], options, judge)

    gold_items, answer_items = gold.items or (gold,), answer.items or (answer,)
    kinds = (gold.kind, answer.kind)
    unordered = False
    if gold.kind == "matrix" or answer.kind == "matrix":
        comparable = kinds == ("matrix", "matrix") and gold.marks == answer.marks
    elif gold.kind == "tuple":
        bounded = all(item.kind != "infinity" for item in gold.items)
        comparable = answer.marks == gold.marks or (answer.kind == "list" and gold.marks == "()" and bounded)
    elif gold.kind == "list":
        unordered = not options.ordered
        comparable = answer.kind in ("list", "set") or answer.marks in ("()", "[]")
    elif gold.kind == "set":
        unordered = True
        comparable = answer.kind in ("set", "list") or len(gold.items) == 1
        gold_items, answer_items = _distinct(gold_items), _distinct(answer_items)
    else:
        comparable = answer.kind == "set" and len(answer.items) == 1
    if not comparable or len(gold_items) != len(answer_items):
        return False
    if unordered:
        return matching(len(gold_items), len(answer_items), same)
    return all_of(same(index, index) for index in range(len(gold_items)))


def _distinct(items: Sequence[Value]) -> tuple[Value, ...]:
    return tuple({vote_key(item): item for item in items}.values())


def matching(rows: int, columns: int, same: Callable[[int, int], bool | None]) -> bool | None:
    """Whether the rows can be paired off with the columns; None where undecided pairs would be needed."""
    if rows != columns or rows > MAX_LIST:
        return False
    known: dict[tuple[int, int], bool | None] = {}

    def verdict(row: int, column: int) -> bool | None:
        if (row, column) not in known:
            known[row, column] = same(row, column)
        return known[row, column]

    def pairs(allowed: tuple[bool | None, ...]) -> bool:
        owner: dict[int, int] = {}

        def place(row: int, seen: set[int]) -> bool:
            for column in sorted(range(columns), key=lambda c: c != row):
                if column not in seen and verdict(row, column) in allowed:
                    seen.add(column)
                    if column not in owner or place(owner[column], seen):
                        owner[column] = row
                        return True
            return False

        return all(place(row, set()) for row in range(rows))

    return True if pairs((True,)) else (None if pairs((True, None)) else False)


def vote_key(value: Value) -> str:
    """The vote of an answer in Maj@K: its value without units, names and layout (verifiers.md, section 2)."""
    match value.kind:
        case "number" if value.number is not None:
            return _number_key(value.number)
        case "equation":
            solved = _solved(value)
            return value.text if solved is None else vote_key(solved)
        case "relation" | "union":
            region = as_region(value)
            if region is None:
                return value.text
            pieces = (f"{p.closed[0]}{vote_key(p.low)},{vote_key(p.high)}{p.closed[1]}" for p in region.pieces)
            return " U ".join(sorted(pieces))
        case "tuple":
            return value.marks[0] + ",".join(map(vote_key, value.items)) + value.marks[1]
        case "set" | "list":
            keys = sorted(map(vote_key, value.items))
            return keys[0] if len(keys) == 1 else "{" + ",".join(keys) + "}"
        case "matrix":
            return value.marks + "[" + ",".join(map(vote_key, value.items)) + "]"
        case "based":
            return value.marks
        case _:
            return value.text


def _number_key(number: Fraction) -> str:
    if number.numerator.bit_length() + number.denominator.bit_length() <= MAX_KEY_BITS:
        return str(number)
    digest = hashlib.sha256(f"{number.numerator:x}/{number.denominator:x}".encode()).hexdigest()
    return f"#{digest[:24]}"


def math_key(payload: str, options: MathOptions) -> str | None:
    """The vote of a payload."""
    return vote_key(read_value(payload, options.thousands)) or None
