"""Python tests without trust: the program ships values out, and the comparison is made here.

Almost every test of MBPP is `assert call == literal`. The call runs in the sandbox, the literal stays here, so
neither an always-true `__eq__`, a patched builtin, an exit nor a printed word can pass (verifiers.md, rows 62-65).
"""

from __future__ import annotations

import ast
import hashlib
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broadreach.verify.sandbox import Limits, Sandbox
from broadreach.verify.sandbox_run import Program, run_program
from broadreach.verify.verdict import Verdict

REL_TOL = ABS_TOL = 1e-9
"""Tolerance where the expected value is a float."""
MAX_KEY_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to run inside, and how to judge what comes out."""

    mode: str
    """`value`, `truth` or `run`."""
    source: str
    accept: Callable[[Any], bool]


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


COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
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


def steps_of(test: str) -> list[Step]:
    """The steps of one test; raises SyntaxError where the test itself is no Python."""
    return [
        _assertion(node.test) if isinstance(node, ast.Assert) else Step("run", ast.unparse(node), lambda value: True)
        for node in ast.parse(test.strip()).body
    ]


def _assertion(node: ast.expr) -> Step:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _assertion(operand)
            return Step(inner.mode, inner.source, lambda value: not inner.accept(value))
        case ast.Compare(left=left, ops=[operation], comparators=[right]) if type(operation) in COMPARISONS:
            return _comparison(left, COMPARISONS[type(operation)], right)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="isclose"), args=[left, right]):
            try:
                expected = literal(right)
                tolerances = {str(keyword.arg): literal(keyword.value) for keyword in node.keywords}
            except ValueError:
                return Step("truth", ast.unparse(node), bool)
            return Step("value", ast.unparse(left), lambda value: math.isclose(value, expected, **tolerances))
    return Step("truth", ast.unparse(node), bool)


def _comparison(left: ast.expr, compare: Callable[[Any, Any], bool], right: ast.expr) -> Step:
    try:
        expected = literal(right)
        return Step("value", ast.unparse(left), lambda value: compare(value, expected))
    except ValueError:
        pass
    try:
        wanted = literal(left)
        return Step("value", ast.unparse(right), lambda value: compare(wanted, value))
    except ValueError:
        both = f"({ast.unparse(left)}, {ast.unparse(right)})"
        return Step("value", both, lambda value: compare(value[0], value[1]))


def decode(record: Any) -> Any:
    """A plain value from the runner's tagged JSON; raises on anything that is not."""
    match record:
        case ["n"]:
            return None
        case ["b", int(value)]:
            return bool(value)
        case ["i", str(digits)]:
            return int(digits, 16)
        case ["f", str(digits)]:
            return float.fromhex(digits)
        case ["c", str(real), str(imaginary)]:
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case ["s", str(text)]:
            return text
        case ["y", str(digits)]:
            return bytes.fromhex(digits)
        case ["l", list(items)]:
            return [decode(item) for item in items]
        case ["t", list(items)]:
            return tuple(decode(item) for item in items)
        case ["s", list(items)] | ["f", list(items)]:
            return {decode(item) for item in items}
        case ["d", list(pairs)]:
            return {decode(key): decode(value) for key, value in pairs}
    raise ValueError("not a plain value")


def run_tests(sandbox: Sandbox, code: str, data: Mapping[str, Any]) -> Verdict:
    """Whether the program passes all tests of `data`: `tests` (or `prompt_tests`), `imports`, `setup`."""
    tests = data.get("tests") or data.get("prompt_tests") or ()
    try:
        steps = [step for test in tests for step in steps_of(test)]
    except (SyntaxError, ValueError, RecursionError) as error:
        return Verdict(False, error=f"a test is no Python: {error}")
    if not steps:
        return Verdict(False, error="no tests")
    wanted = {name: data[name] for name in ("cpu_seconds", "wall_seconds") if data.get(name)}
    imports, setup = data.get("imports") or "", data.get("setup") or ""
    program = Program(
        code=code,
        steps=[(step.mode, step.source) for step in steps],
        imports=imports if isinstance(imports, str) else "\n".join(imports),
        setup=setup,
    )
    outcome = run_program(sandbox, program, Limits(**wanted))
    if not outcome.started:
        return Verdict(False, error=f"the sandbox did not start ({sandbox.mode})")
    if not outcome.finished or len(outcome.records) != len(steps):
        return Verdict(False, timed_out=outcome.timed_out)
    return Verdict(all(_accepts(step, record) for step, record in zip(steps, outcome.records, strict=True)))


def _accepts(step: Step, record: Any) -> bool:
    if step.mode == "run":
        return record is None
    try:
        return bool(step.accept(decode(record)))
    except Exception:
        return False


class _Bare(ast.NodeTransformer):
    """Drops docstrings and annotations, which do not change what a program does."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node


def code_key(code: str) -> str | None:
    """The vote: the syntax tree without docstrings, comments and annotations; None for no valid program."""
    if len(code) > MAX_KEY_LENGTH or not code.strip():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.dump(_Bare().visit(ast.parse(code)))
        return "ast:" + hashlib.sha256(tree.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
