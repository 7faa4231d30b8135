"""The program inside the sandbox: runs a candidate, then ships the tests' values out. Standard library only.

It is handed to a bare interpreter as text (`python -c`). The candidate shares its process, so nothing it sends is
trusted: it never learns the expected values, and the parent compares (verifiers.md, section 4).
"""

from __future__ import annotations

import builtins
import json
import os
import resource
import sys
import types
from typing import Any

MAX_DEPTH = 60
MAX_ITEMS = 100_000


class NotPlainError(Exception):
    """A value that is not built of plain types only."""


def encode(value: Any, depth: int = 0) -> list[Any]:
    """A plain value as tagged JSON; subclasses of dict and named tuples go by their contents."""
    if depth > MAX_DEPTH:
        raise NotPlainError
    kind = type(value)
    if value is None:
        return ["n"]
    if kind is bool:
        return ["b", 1 if value else 0]
    if kind is int:
        return ["i", f"{value:x}"]
    if kind is float:
        return ["f", value.hex()]
    if kind is complex:
        return ["c", value.real.hex(), value.imag.hex()]
    if kind is str:
        return ["s", value]
    if kind in (bytes, bytearray):
        return ["y", value.hex()]
    if kind is list or kind is set or kind is frozenset:
        return [kind.__name__[0], [encode(item, depth + 1) for item in kind.__iter__(value)]]
    if issubclass(kind, tuple) and (kind is tuple or hasattr(kind, "_fields")):
        return ["t", [encode(item, depth + 1) for item in tuple.__iter__(value)]]
    standard = ("OrderedDict", "Counter", "defaultdict")
    if kind is dict or (issubclass(kind, dict) and kind.__module__ == "collections" and kind.__name__ in standard):
        return ["d", [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in dict.items(value)]]
    raise NotPlainError


def limit(name: str, wanted: int) -> None:
    """Lower a limit, never above the present hard one (row 67)."""
    which = getattr(resource, name)
    hard = resource.getrlimit(which)[1]
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(which, (soft, soft))


def main(request_fd: int, nonce_fd: int, result_fd: int) -> None:
    """Load the candidate, wait for the nonce, evaluate the steps, report each, and leave without exit handlers."""
    write, dumps, leave, read = os.write, json.dumps, os._exit, os.read
    catch, execute, evaluate, compile_ = BaseException, exec, eval, compile
    with os.fdopen(request_fd, encoding="utf-8") as stream:
        request = json.load(stream)
    for name, wanted in request["limits"].items():
        limit(name, wanted)

    def send(text: str) -> None:
        data = text.encode("ascii") + b"\n"
        while data:
            data = data[write(result_fd, data) :]

    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    space = module.__dict__
    space["__builtins__"] = builtins
    send("ready")
    try:
        for label in ("imports", "code", "setup"):
            execute(compile_(request[label], f"<{label}>", "exec", dont_inherit=True), space)
    except catch:
        leave(1)
    send("loaded")
    nonce = read(nonce_fd, 64).decode("ascii")
    for mode, source in request["steps"]:
        answer: Any = None
        try:
            if mode == "run":
                execute(compile_(source, "<test>", "exec", dont_inherit=True), space)
            else:
                value = evaluate(compile_(source, "<test>", "eval", dont_inherit=True), space)
                answer = encode(value) if mode == "value" else ["b", 1 if value else 0]
        except catch:
            leave(1)
        send(nonce + dumps(answer))
    send(nonce + "done")
    leave(0)


if __name__ == "__main__" and len(sys.argv) > 3:
    main(*map(int, sys.argv[1:4]))
