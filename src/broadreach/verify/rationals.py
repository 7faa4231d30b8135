r"""The exact value of a purely rational LaTeX expression, with a bound on its size.

Reads integers, finite decimals, `\frac`, `/`, mixed numbers, products, powers with integer exponents, factorials and
binomials; anything with a letter or a root is none of its business. A tower of powers is refused before anything
large is computed.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

MAX_BITS = 60_000
MAX_DEPTH = 40
MAX_FACTORIAL = 4_000
SCIENTIFIC = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))[eE]([-+]?\d{1,5})")
SPACED = re.compile(r"([-+]?)(\d{1,3}(?: \d{3})+)(\.\d+)?")
REPEATING = re.compile(r"([-+]?)(\d{0,99})\.(\d{0,99})\\(?:overline|bar)(?:\{(\d{1,99})\}|(\d))")
PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
TOKEN = re.compile(r"\d+\.?\d*|\.\d+|\\[A-Za-z]+|\S|\s+")


class TooLargeError(ArithmeticError):
    """The value needs more than MAX_BITS bits, or more nesting than MAX_DEPTH: refused, never computed."""


class NotRationalError(ValueError):
    """The text is not a purely rational expression."""


def read_rational(text: str) -> Fraction | None:
    """The exact value of a canonical text, or None where it is not purely rational.

    Raises TooLargeError for a value that is rational but too large to write down.
    """
    if not text.isascii():
        return None
    if PLAIN.fullmatch(text) is not None:
        return _decimal(text)
    if (scientific := SCIENTIFIC.fullmatch(text)) is not None:
        return _checked(_decimal(scientific.group(1)) * _power(Fraction(10), int(scientific.group(2))))
    if (spaced := SPACED.fullmatch(text)) is not None:
        return _decimal(spaced.group().replace(" ", ""))
    if (repeating := REPEATING.fullmatch(text)) is not None:
        return _repeating(*repeating.groups(default=""))
    if re.search(r"\d", text) is None:
        return None
    tokens = TOKEN.findall(text)
    reader = _Reader(tokens)
    try:
        value = reader.sum()
    except (NotRationalError, ZeroDivisionError, RecursionError):
        return None
    return value if reader.index == len(tokens) else None


def _decimal(text: str) -> Fraction:
    digits = len(text)
    if digits > 4_000:
        if digits > MAX_BITS // 4:
            raise TooLargeError("too many digits")
        whole, _, places = text.lstrip("+-").partition(".")
        value = Fraction(_long_integer(whole + places), _power(Fraction(10), len(places)).numerator)
        return -value if text.startswith("-") else value
    return Fraction(text.rstrip(".") if text.endswith(".") else text)


def _repeating(sign: str, whole: str, places: str, period: str, digit: str) -> Fraction:
    """`0.1\\overline{6}`: the period is worth itself over as many nines."""
    period = period or digit
    fixed, repeated = int((whole + places) or "0"), Fraction(int(period), 10 ** len(period) - 1)
    value = (fixed + repeated) / 10 ** len(places)
    return -value if sign == "-" else value


def _long_integer(digits: str) -> int:
    value = 0
    for start in range(0, len(digits), 4_000):
        piece = digits[start : start + 4_000]
        value = value * 10 ** len(piece) + int(piece)
    return value


def _checked(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise TooLargeError("value too large")
    return value


def _power(base: Fraction, exponent: int) -> Fraction:
    if base in (0, 1):
        return base**exponent
    if base == -1:
        return Fraction(-1 if exponent % 2 else 1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(exponent) * bits > 2 * MAX_BITS:
        raise TooLargeError("power too large")
    return _checked(base**exponent)


def _whole(value: Fraction) -> int:
    if value.denominator != 1 or value < 0:
        raise NotRationalError("not a whole number")
    if value > MAX_FACTORIAL:
        raise TooLargeError("factorial too large")
    return value.numerator


class _Reader:
    """Recursive descent over the tokens; every method leaves `index` behind what it has read."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    def peek(self, ahead: int = 0) -> str:
        position = self.index + ahead
        return self.tokens[position] if position < len(self.tokens) else ""

    def take(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise NotRationalError(f"unexpected {token!r}")
        self.index += 1
        return token

    def sum(self) -> Fraction:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLargeError("nested too deeply")
        value = self.product()
        while self.peek() in ("+", "-"):
            sign = 1 if self.take() == "+" else -1
            value = _checked(value + sign * self.product())
        self.depth -= 1
        return value

    def product(self) -> Fraction:
        value = self.signed()
        while True:
            token = self.peek()
            if token in (r"\cdot", "/"):
                self.take()
                right = self.signed()
                value = _checked(value * right if token == r"\cdot" else value / right)
            elif token == "(" or (token == r"\frac" and self.tokens[self.index - 1] in (")", "}")):
                value = _checked(value * self.power())
            else:
                return value

    def signed(self) -> Fraction:
        sign = 1
        while self.peek() in ("+", "-"):
            sign = -sign if self.take() == "-" else sign
        return sign * self.power()

    def power(self) -> Fraction:
        value = self.primary()
        while True:
            if self.peek() == "!":
                self.take()
                value = Fraction(math.factorial(_whole(value)))
            elif self.peek() == "^":
                self.take()
                exponent = self.group()
                if exponent.denominator != 1:
                    raise NotRationalError("not a whole exponent")
                value = _power(value, exponent.numerator)
            else:
                return value

    def group(self) -> Fraction:
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def primary(self) -> Fraction:
        token = self.peek()
        if token == "(":
            self.take()
            value = self.sum()
            self.take(")")
            return value
        if token == "{":
            return self.group()
        if token in (r"\frac", r"\binom"):
            self.take()
            first, second = self.group(), self.group()
            if token == r"\frac":
                return _checked(first / second)
            return _checked(Fraction(math.comb(_whole(first), _whole(second))))
        if token[:1].isdigit() or (len(token) > 1 and token[0] == "."):
            return self.number()
        raise NotRationalError(f"unexpected {token!r}")

    def number(self) -> Fraction:
        """A number, a mixed number (`3\\frac{1}{2}`, `3 1/2`), or digits grouped by spaces."""
        token = self.take()
        if self.peek() == r"\frac" and token.isdigit():
            part = self.primary()
            if not 0 < part < 1:
                raise NotRationalError("neither a mixed number nor a product")
            return Fraction(token) + part
        if self.peek().isspace() and token.isdigit():
            if self.peek(1).isdigit() and self.peek(2) == "/" and self.peek(3).isdigit():
                self.take()
                part = Fraction(int(self.take()), int((self.take(), self.take())[1]))
                if 0 < part < 1:
                    return Fraction(token) + part
                raise NotRationalError("not a mixed number")
            while self.peek().isspace() and re.fullmatch(r"\d{3}(\.\d*)?", self.peek(1)) and len(token) <= 3:
                self.take()
                token, last = token + self.take(), token
                if len(last) > 3:
                    break
        return _decimal(token)
