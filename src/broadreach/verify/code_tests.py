"""Python tests without trust: the program ships values out, and the comparison is made here.

Almost every test of MBPP is `assert call == literal`. The call runs in the sandbox, the literal stays here, so
neither an always-true `__eq__`, a patched builtin, an exit nor a printed word can pass (verifiers.md, rows 62-65).
"""

from __future__ import annotations

import ast
import hashlib
import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from broadreach.verify.code_steps import MODULES, Known, Step, steps_of
from broadreach.verify.sandbox import Limits, Sandbox
from broadreach.verify.sandbox_run import Program, run_program
from broadreach.verify.verdict import Verdict

MAX_KEY_LENGTH = 20_000
MAX_KNOWN = 20_000
_known: dict[tuple[str, str], tuple[Any] | None] = {}
"""(imports, source) -> the value a clean process gave, in a tuple; None where it gave none."""
_known_lock = threading.Lock()


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


def run_tests(sandbox: Sandbox, code: str, data: Mapping[str, Any], deadline: float | None = None) -> Verdict:
    """Whether the program passes all tests of `data`: `tests` (or `prompt_tests`), `imports`, `setup`.

    `deadline` lowers the limits of time, in seconds; the usual ones are those of `sandbox.Limits`, or of `data`.
    """
    imports = _imports(data)
    try:
        steps = steps_of(tests_of(data), imports)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Verdict(False, error=f"a test is no Python: {error}")
    if not steps:
        return Verdict(False, error="no tests")
    limits = limits_of(data, deadline)
    known = expected_values(sandbox, imports, [source for step in steps for source in step.needs], limits)
    steps = [
        step.fallback if step.fallback is not None and not known.keys() >= set(step.needs) else step for step in steps
    ]
    program = Program(
        code=code,
        steps=[(step.mode, step.source) for step in steps],
        imports=imports,
        setup=data.get("setup") or "",
    )
    outcome = run_program(sandbox, program, limits)
    if not outcome.started:
        return Verdict(False, error=f"the sandbox did not start ({sandbox.mode})", timed_out=outcome.timed_out)
    if not outcome.finished or len(outcome.records) != len(steps):
        return Verdict(False, timed_out=outcome.timed_out)
    return Verdict(all(_accepts(step, record, known) for step, record in zip(steps, outcome.records, strict=True)))


def tests_of(data: Mapping[str, Any]) -> Sequence[str]:
    """The tests; raises ValueError for one text where a list of texts is wanted."""
    tests = data.get("tests") or data.get("prompt_tests") or ()
    if isinstance(tests, str) or not all(isinstance(test, str) for test in tests):
        raise ValueError("the tests must be a list of texts, one assert statement each")
    return tuple(tests)


def count_inside(data: Mapping[str, Any]) -> int:
    """How many assertions are judged inside the candidate's own process ("in-process"); 0 for tests of no Python."""
    try:
        return sum(step.inside for step in steps_of(tests_of(data), _imports(data)))
    except (SyntaxError, ValueError, RecursionError):
        return 0


def _imports(data: Mapping[str, Any]) -> str:
    imports = data.get("imports") or ""
    return imports if isinstance(imports, str) else "\n".join(imports)


def limits_of(data: Mapping[str, Any], deadline: float | None) -> Limits:
    """The limits of one program: the task's own or the usual ones, never above the deadline."""
    wanted = {name: data[name] for name in ("cpu_seconds", "wall_seconds") if data.get(name)}
    limits = Limits(**wanted)
    if deadline is None:
        return limits
    return Limits(
        cpu_seconds=min(limits.cpu_seconds, max(1, math.ceil(deadline))),
        wall_seconds=min(limits.wall_seconds, deadline),
    )


def expected_values(sandbox: Sandbox, imports: str, sources: Sequence[str], limits: Limits) -> Known:
    """Source -> value of every expected side that a process without any candidate can evaluate; remembered."""
    wanted = list(dict.fromkeys(sources))
    missing = [source for source in wanted if (imports, source) not in _known]
    modules = [f"import {name}" for name in sorted(MODULES) if any(name in source for source in missing)]
    while missing:
        program = Program("", [("value", source) for source in missing], "\n".join([imports, *modules]))
        outcome = run_program(sandbox, program, limits)
        if not outcome.started:
            break
        done = len(outcome.records)
        found: list[tuple[Any] | None] = [(decode(record),) for record in outcome.records]
        with _known_lock:
            if len(_known) > MAX_KNOWN:
                _known.clear()
            _known.update(zip([(imports, source) for source in missing], [*found, None], strict=False))
        missing = missing[done + 1 :]
    values = {source: _known.get((imports, source)) for source in wanted}
    return {source: value[0] for source, value in values.items() if value is not None}


def _accepts(step: Step, record: Any, known: Known) -> bool:
    if step.mode == "run":
        return record is None
    try:
        return bool(step.accept(decode(record), known))
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
