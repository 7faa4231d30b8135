"""What to run for a test, and how to judge what comes out: the expected side never runs where the candidate does.

`assert call == literal` ships the call's value. An expected side that is no literal but needs nothing of the candidate
(`math.sqrt(81)`, `sorted([3, 1])`) is evaluated in a process of its own (`Step.needs`). What is left is marked
`inside`: there the candidate's process is trusted with the truth of an expression (verifiers.md, section 4).
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from broadreach.verify.code_unroll import bindings, stored_names, substituted, unroll

REL_TOL = ABS_TOL = 1e-9
"""Tolerance where the expected value is a float."""
_MODULE_NAMES = (
    "math cmath statistics itertools collections fractions decimal string operator functools re heapq bisect"
)
MODULES = frozenset(_MODULE_NAMES.split())
_UNSTABLE_NAMES = "input open exec eval compile globals locals vars dir id hash print help breakpoint __import__"
UNSTABLE = frozenset(_UNSTABLE_NAMES.split())
BUILTINS = frozenset(dir(builtins)) - UNSTABLE
Known = Mapping[str, Any]
"""Source of an expected side -> its value from the clean process."""
Compare = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to run beside the candidate, and how to judge what comes out."""

    mode: str
    """`value`, `truth` or `run`."""
    source: str
    accept: Callable[[Any, Known], bool]
    needs: tuple[str, ...] = ()
    """Expected sides to evaluate in a clean process first."""
    inside: bool = False
    """In-process: the verdict rests on what the candidate's own process says of an expression."""
    fallback: Step | None = None
    """What to run where the clean process cannot evaluate `needs`."""


def values_equal(actual: Any, expected: Any) -> bool:
    """Python's equality on plain values, with a tolerance wherever a float is expected."""
    if isinstance(expected, float) and isinstance(actual, (int, float)):
        return actual == expected or math.isclose(actual, expected, rel_tol=REL_TOL, abs_tol=ABS_TOL)
    if isinstance(expected, (list, tuple)):
        return (
            type(actual) is type(expected) and len(actual) == len(expected) and all(map(values_equal, actual, expected))
        )
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(values_equal(actual[key], expected[key]) for key in expected)
    return bool(actual == expected)


COMPARISONS: dict[type[ast.cmpop], Compare] = {
    ast.Eq: values_equal,
    ast.NotEq: lambda actual, expected: not values_equal(actual, expected),
    ast.Is: values_equal,
    ast.IsNot: lambda actual, expected: not values_equal(actual, expected),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda actual, expected: actual in expected,
    ast.NotIn: lambda actual, expected: actual not in expected,
}


def literal(node: ast.expr) -> Any:
    """The value of a literal, or of `set(...)` and its like around one; raises ValueError for anything else."""
    makers = {"set": set, "frozenset": frozenset, "tuple": tuple, "list": list, "float": float}
    match node:
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in makers:
            return makers[name](literal(argument))
        case ast.Call(func=ast.Name(id="set" | "frozenset"), args=[], keywords=[]):
            return set()
    try:
        return ast.literal_eval(node)
    except (TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError("not a literal") from error


def steps_of(tests: str | Sequence[str], imports: str = "") -> list[Step]:
    """The steps of the tests, in order; raises SyntaxError where a test or the imports are no Python."""
    texts = [tests] if isinstance(tests, str) else tests
    statements = [node for text in texts for node in ast.parse(text.strip()).body]
    reader = _Reader(statements, ast.parse(imports).body)
    return [step for node in unroll(statements) for step in reader.steps(node)]


class _Reader:
    """Turns statements into steps; knows which names mean the same in a process without the candidate."""

    def __init__(self, statements: Sequence[ast.stmt], imports: Sequence[ast.stmt]) -> None:
        self.functions = {node.name for node in statements if isinstance(node, ast.FunctionDef)}
        self.clean = (BUILTINS | MODULES | _imported(imports)) - set(stored_names(statements))

    def steps(self, node: ast.stmt) -> list[Step]:
        if isinstance(node, ast.Assert):
            return self.assertion(node.test)
        calls = [inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
        judges = any(isinstance(inner, ast.Assert) for inner in ast.walk(node)) or bool(called & self.functions)
        inside = judges and not isinstance(node, ast.FunctionDef)
        return [Step("run", ast.unparse(node), lambda value, known: True, inside=inside)]

    def assertion(self, node: ast.expr) -> list[Step]:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return [step for part in parts for step in self.assertion(part)]
            case ast.UnaryOp(op=ast.Not(), operand=ast.BoolOp(op=ast.Or(), values=parts)):
                return [step for part in parts for step in self.assertion(ast.UnaryOp(ast.Not(), part))]
            case ast.UnaryOp(op=ast.Not(), operand=operand) if len(inner := self.assertion(operand)) == 1:
                return [_inverted(inner[0])]
            case ast.Call(func=ast.Name(id="all"), args=[argument], keywords=[]) if asked := _parts(argument):
                return [step for part in asked for step in self.assertion(part)]
            case ast.Compare(left=left, ops=[operation], comparators=[right]) if type(operation) in COMPARISONS:
                compare = COMPARISONS[type(operation)]
                return [self.distance(left, compare, right, node) or self.comparison(left, compare, right)]
            case ast.Compare(left=low, ops=[first, second], comparators=[middle, high]):
                return [self.between(low, first, middle, second, high) or _truth(node)]
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="isclose"), args=[left, right]):
                return [self.is_close(left, right, node) or _truth(node)]
        return [_truth(node)]

    def side(self, node: ast.expr, beside: ast.expr) -> Callable[[Known], Any] | None:
        """How to get the value of an expected side without the candidate, or None where it may need it."""
        try:
            value = literal(node)
            return lambda known: value
        except ValueError:
            pass
        names = _free_names(node)
        tested = _free_names(beside)
        if not names <= self.clean or (tested <= self.clean and names & tested):
            return None
        source = ast.unparse(node)
        return _Lookup(source)

    def comparison(self, left: ast.expr, compare: Compare, right: ast.expr) -> Step:
        both = f"({ast.unparse(left)}, {ast.unparse(right)})"
        shared = Step("value", both, lambda value, known: compare(value[0], value[1]), inside=True)
        if (expected := self.side(right, left)) is not None:
            return _step(left, lambda value, known: compare(value, expected(known)), shared, expected)
        if (wanted := self.side(left, right)) is not None:
            return _step(right, lambda value, known: compare(wanted(known), value), shared, wanted)
        return shared

    def distance(self, left: ast.expr, compare: Compare, right: ast.expr, node: ast.expr) -> Step | None:
        """`abs(f(x) - 3.14) < 1e-6`: the distance is taken here."""
        match left:
            case ast.Call(
                func=ast.Name(id="abs") | ast.Attribute(value=ast.Name(id="math"), attr="fabs"),
                args=[ast.BinOp(left=first, op=ast.Sub(), right=second)],
                keywords=[],
            ):
                bound = self.side(right, left)
                for tested, other in ((first, second), (second, first)):
                    wanted = self.side(other, tested)
                    if wanted is not None and bound is not None:
                        accept = _within(wanted, compare, bound)
                        return _step(tested, accept, _truth(node), wanted, bound)
        return None

    def between(
        self, low: ast.expr, first: ast.cmpop, middle: ast.expr, second: ast.cmpop, high: ast.expr
    ) -> Step | None:
        """`1 <= f(x) < 4`, with both ends known here."""
        below, above = self.side(low, middle), self.side(high, middle)
        if below is None or above is None or not {type(first), type(second)} <= COMPARISONS.keys():
            return None
        one, other = COMPARISONS[type(first)], COMPARISONS[type(second)]
        fallback = _truth(ast.Compare(low, [first, second], [middle, high]))
        accept = lambda value, known: one(below(known), value) and other(value, above(known))  # noqa: E731
        return _step(middle, accept, fallback, below, above)

    def is_close(self, left: ast.expr, right: ast.expr, node: ast.Call) -> Step | None:
        expected = self.side(right, left)
        try:
            tolerances = {str(keyword.arg): literal(keyword.value) for keyword in node.keywords}
        except ValueError:
            return None
        if expected is None:
            return None
        accept = lambda value, known: math.isclose(value, expected(known), **tolerances)  # noqa: E731
        return _step(left, accept, _truth(node), expected)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """An expected side whose value the clean process gives."""

    source: str

    def __call__(self, known: Known) -> Any:
        return known[self.source]


def _step(
    tested: ast.expr, accept: Callable[[Any, Known], bool], fallback: Step, *sides: Callable[[Known], Any]
) -> Step:
    needs = tuple(side.source for side in sides if isinstance(side, _Lookup))
    return Step("value", ast.unparse(tested), accept, needs, fallback=fallback if needs else None)


def _within(wanted: Callable[[Known], Any], compare: Compare, bound: Callable[[Known], Any]) -> Any:
    return lambda value, known: compare(abs(value - wanted(known)), bound(known))


def _truth(node: ast.expr) -> Step:
    return Step("truth", ast.unparse(node), lambda value, known: bool(value), inside=True)


def _inverted(step: Step) -> Step:
    fallback = None if step.fallback is None else _inverted(step.fallback)
    return replace(step, accept=lambda value, known: not step.accept(value, known), fallback=fallback)


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """The expressions that `all(...)` asks for, where they can be written out."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return list(parts)
        case ast.GeneratorExp(elt=element, generators=[loop]) | ast.ListComp(elt=element, generators=[loop]):
            rows = None if loop.ifs or loop.is_async else bindings(loop.target, loop.iter)
            if rows is not None and not set(stored_names([element])) & {name for row in rows for name in row}:
                found = (substituted(element, row) for row in rows)
                return [part for part in found if isinstance(part, ast.expr)]
    return None


def _free_names(node: ast.expr) -> set[str]:
    bound = set(stored_names([node]))
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} - bound


def _imported(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that the imports of a test take from the standard modules that are the same everywhere."""
    found: set[str] = set()
    for node in statements:
        match node:
            case ast.Import(names=names):
                found |= {name.asname or name.name for name in names if name.name.partition(".")[0] in MODULES}
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] in MODULES:
                found |= {name.asname or name.name for name in names}
    return found
