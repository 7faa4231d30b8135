"""Braces around every argument of LaTeX tokens, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

ARGUMENTS = {r"\frac": 2, r"\binom": 2, r"\sqrt": 1, "^": 1, "_": 1}
"""Arguments of each command."""


def brace_arguments(tokens: Sequence[str]) -> list[str]:
    r"""`\frac43`, `\sqrt2`, `x^2` and `sqrt(x)` with braces around every argument; linear in the number of tokens."""
    if ARGUMENTS.keys().isdisjoint(tokens):
        return list(tokens)
    reader = _Arguments(tokens)
    reader.read(reader.end)
    return reader.result


class _Arguments:
    """Reads tokens from left to right; an argument takes one digit of a run and leaves the others."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = list(tokens)
        self.index = 0
        self.end = len(self.tokens)
        """Where the innermost group ends: no argument reaches beyond it."""
        self.result: list[str] = []
        self.closing = _matches(self.tokens)

    def read(self, end: int) -> None:
        """Read up to the token at `end`."""
        outer, self.end = self.end, end
        while self.index < end:
            token = self.take()
            if token == r"\sqrt" and self.peek() == "[":
                while self.index < end and self.result[-1] != "]":
                    self.take()
            for _ in range(ARGUMENTS.get(token, 0)):
                following = self.peek()
                if following == "{" and token not in "^_":
                    self.group("}")
                elif following not in ("", "{"):
                    self.argument(token)
        self.end = outer

    def take(self) -> str:
        token = self.tokens[self.index]
        self.result.append(token)
        self.index += 1
        return token

    def peek(self) -> str:
        while self.index < self.end and self.tokens[self.index] == " ":
            self.index += 1
        return self.tokens[self.index] if self.index < self.end else ""

    def group(self, close: str) -> None:
        """One bracketed group, written in braces; without a closing bracket, all that is left."""
        end = min(self.closing.get(self.index, self.end), self.end)
        self.index += 1
        self.result.append("{")
        self.read(end)
        self.result.append("}")
        self.index = end + (end < self.end and self.tokens[end] == close)

    def argument(self, command: str) -> None:
        token = self.tokens[self.index]
        if command == r"\sqrt" and token == "(":
            self.group(")")
            return
        self.result.append("{")
        self.take()
        if command in ("^", "_"):
            if token in "+-" and self.index < self.end and self.tokens[self.index].isdigit():
                self.take()
        elif token.isdigit() and len(token) > 1:
            self.result[-1] = token[0]
            self.index -= 1
            self.tokens[self.index] = token[1:]
        self.result.append("}")


def _matches(tokens: Sequence[str]) -> dict[int, int]:
    """Index of every round or curly opening bracket that is closed -> index of what closes it, each kind by itself."""
    opened: dict[str, list[int]] = {"{": [], "(": []}
    found: dict[int, int] = {}
    for index, token in enumerate(tokens):
        if token in opened:
            opened[token].append(index)
        elif token in ("}", ")") and (waiting := opened["{" if token == "}" else "("]):
            found[waiting.pop()] = index
    return found
