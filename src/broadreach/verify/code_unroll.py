"""Tests taken apart before they run: literal loops unrolled, `check(f)` written out, so that every assert stands alone.

What cannot be written out stays as it is, runs beside the candidate, and is marked (`code_steps.Step.inside`).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence

MAX_STATEMENTS = 1_000
SIMPLE = (ast.Assert, ast.Expr, ast.Assign, ast.AugAssign, ast.For, ast.Import, ast.ImportFrom, ast.Pass)
"""Statements of a function that is written out; anything else leaves its call alone."""


def unroll(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements with literal `for` loops and calls of their own simple functions written out."""
    functions = {node.name: node for node in statements if isinstance(node, ast.FunctionDef)}
    constants = _constants(statements)
    found: list[ast.stmt] = []
    for node in statements:
        found += _expand(node, functions, constants, MAX_STATEMENTS - len(found))
    return found


def _expand(
    node: ast.stmt, functions: Mapping[str, ast.FunctionDef], constants: Mapping[str, ast.expr], room: int
) -> list[ast.stmt]:
    match node:
        case ast.For(target=target, iter=iterable, body=body, orelse=[]):
            rows = bindings(target, iterable, constants)
            written = _written_out(rows, body) if rows is not None and len(rows) * len(body) <= room else None
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=args, keywords=[])) if name in functions:
            written = _inlined(functions[name], args)
        case _:
            return [node]
    if written is None:
        return [node]
    found: list[ast.stmt] = []
    for inner in written:
        found += _expand(inner, functions, constants, room - len(found))
    return found if len(found) <= room else [node]


def bindings(
    target: ast.expr, iterable: ast.expr, constants: Mapping[str, ast.expr] | None = None
) -> list[dict[str, ast.expr]] | None:
    """Loop variable -> its literal for every round of a loop, or None where the loop is no literal one."""
    rows = _items(iterable, constants or {})
    if rows is None or len(rows) > MAX_STATEMENTS:
        return None
    found = [_bound(target, row) for row in rows]
    return None if any(row is None for row in found) else [row for row in found if row is not None]


def _bound(target: ast.expr, item: ast.expr) -> dict[str, ast.expr] | None:
    match target, item:
        case ast.Name(id=name), _ if isinstance(item, ast.Name) or is_literal(item):
            return {name: item}
        case ((ast.Tuple(elts=names) | ast.List(elts=names)), (ast.Tuple(elts=parts) | ast.List(elts=parts))):
            if len(names) != len(parts):
                return None
            found: dict[str, ast.expr] = {}
            for inner, part in zip(names, parts, strict=True):
                row = _bound(inner, part)
                if row is None:
                    return None
                found |= row
            return found
    return None


def _items(node: ast.expr, constants: Mapping[str, ast.expr]) -> list[ast.expr] | None:
    match node:
        case ast.Name(id=name) if name in constants:
            return _items(constants[name], {})
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return list(items)
        case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]) if args and all(map(is_literal, args)):
            try:
                values = range(*(ast.literal_eval(argument) for argument in args))
            except (TypeError, ValueError):
                return None
            return [ast.Constant(value) for value in values] if len(values) <= MAX_STATEMENTS else None
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
            rows = _items(inner, constants)
            return None if rows is None else [_pair(ast.Constant(index), row) for index, row in enumerate(rows)]
        case ast.Call(func=ast.Name(id="zip"), args=[first, second], keywords=[]):
            left, right = _items(first, constants), _items(second, constants)
            return None if left is None or right is None else list(map(_pair, left, right))
        case ast.Call(func=ast.Attribute(value=ast.Dict(keys=keys, values=values), attr="items"), args=[], keywords=[]):
            return [_pair(key, value) for key, value in zip(keys, values, strict=True) if key is not None]
    return None


def _pair(first: ast.expr, second: ast.expr) -> ast.expr:
    return ast.Tuple([first, second], ast.Load())


def is_literal(node: ast.expr) -> bool:
    """Whether `ast.literal_eval` reads it."""
    try:
        ast.literal_eval(node)
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _constants(statements: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Names given a literal once at the top and then only iterated over or read."""
    stored = list(stored_names(statements))
    found: dict[str, ast.expr] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if stored.count(name) == 1 and is_literal(value):
                found[name] = value
    for part in (inner for node in statements for inner in ast.walk(node)):
        match part:
            case ast.Attribute(value=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                found.pop(name, None)
            case ast.Call(args=args):
                for argument in args:
                    if isinstance(argument, ast.Name):
                        found.pop(argument.id, None)
    return found


def stored_names(statements: Sequence[ast.AST]) -> Iterator[str]:
    """Every name that is bound anywhere in the statements, once a binding."""
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


class _Substitution(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.values:
            return node
        value = copy.deepcopy(self.values[node.id])
        return ast.Name(value.id, node.ctx) if isinstance(value, ast.Name) else value

    def visit_arg(self, node: ast.arg) -> ast.AST:
        value = self.values.get(node.arg)
        return ast.arg(value.id) if isinstance(value, ast.Name) else node


def substituted(node: ast.AST, values: Mapping[str, ast.expr]) -> ast.AST:
    """A copy of the node with every one of these names replaced."""
    return ast.fix_missing_locations(_Substitution(values).visit(copy.deepcopy(node)))


def _written_out(rows: Sequence[Mapping[str, ast.expr]], body: Sequence[ast.stmt]) -> list[ast.stmt] | None:
    names = {name for row in rows for name in row}
    leaves = any(isinstance(inner, ast.Break | ast.Continue) for node in body for inner in ast.walk(node))
    if leaves or names & set(stored_names(body)):
        return None
    copies = (substituted(node, row) for row in rows for node in body)
    return [node for node in copies if isinstance(node, ast.stmt)]


def _inlined(function: ast.FunctionDef, args: Sequence[ast.expr]) -> list[ast.stmt] | None:
    """The body with its parameters replaced and its own names renamed, or None where it is not that simple."""
    named = function.args
    plain = not (named.posonlyargs or named.kwonlyargs or named.vararg or named.kwarg or named.defaults)
    nodes = [inner for node in function.body for inner in ast.walk(node)]
    simple = all(isinstance(node, SIMPLE) for node in nodes if isinstance(node, ast.stmt))
    yields = any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in nodes)
    if not plain or not simple or yields or function.decorator_list or len(named.args) != len(args):
        return None
    if not all(isinstance(argument, ast.Name) or is_literal(argument) for argument in args):
        return None
    parameters = {parameter.arg: value for parameter, value in zip(named.args, args, strict=True)}
    own = set(stored_names(function.body))
    if own & parameters.keys():
        return None
    renamed: dict[str, ast.expr] = {name: ast.Name(f"_{function.name}_{name}", ast.Load()) for name in own}
    copies = (substituted(node, {**parameters, **renamed}) for node in function.body)
    return [node for node in copies if isinstance(node, ast.stmt)]
