"""Options that hold several numbers, such as `--k 1,16,32`."""

from __future__ import annotations

from broadreach.types import UserError


def numbers(text: str, option: str) -> tuple[float, ...]:
    """`0.1,0.2` as numbers; UserError that names the option."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UserError(f"{option} {text}: give numbers with commas between, like 0.3,1.0") from None


def whole_numbers(text: str, option: str, least: int = 1) -> tuple[int, ...]:
    """`1,16,32` as whole numbers of `least` or more; UserError that names the option."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < least:
        raise UserError(f"{option} {text}: give whole numbers of {least} or more with commas between, like 1,16,32")
    return found
