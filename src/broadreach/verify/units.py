r"""A unit at the end of an answer, or a currency mark in front of it (verifiers.md, section 1, rule 4).

A mark on one side alone is dropped; two different units are unequal; nothing is ever converted or scaled. A bare
single letter is never a unit: `6m` may be six times m.
"""

from __future__ import annotations

import re

ALIASES = {
    name: unit
    for unit, names in {
        "percent": "percent percentage pct",
        "degree": "degree degrees deg",
        "celsius": "celsius",
        "fahrenheit": "fahrenheit",
        "radian": "radian radians rad",
        "dollar": "dollar dollars usd buck bucks",
        "cent": "cent cents",
        "euro": "euro euros eur",
        "pound": "pound pounds lb lbs",
        "mm": "mm millimeter millimeters millimetre millimetres",
        "cm": "cm centimeter centimeters centimetre centimetres",
        "m": "meter meters metre metres",
        "km/hour": "kmh kph kmph",
        "km": "km kilometer kilometers kilometre kilometres",
        "inch": "inch inches",
        "foot": "foot feet ft",
        "yard": "yard yards yd",
        "mile": "mile miles mi",
        "mile/hour": "mph",
        "g": "gram grams",
        "kg": "kg kilogram kilograms",
        "second": "second seconds sec secs",
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days",
        "week": "week weeks",
        "month": "month months",
        "year": "year years yr yrs",
        "litre": "liter liters litre litres",
        "ml": "ml milliliter milliliters millilitre millilitres",
        "unit": "unit units",
    }.items()
    for name in names.split()
}
SHORT = {"m": "m", "g": "g", "s": "second", "h": "hour", "in": "inch", "c": "celsius", "f": "fahrenheit", "l": "litre"}
_SCALE_WORDS = """
    hundred hundreds thousand thousands million millions billion billions trillion trillions dozen dozens half halves
    third thirds quarter quarters fourth fourths fifth fifths sixth sixths seventh sevenths eighth eighths ninth ninths
    tenth tenths hundredth hundredths thousandth thousandths millionth millionths squared cubed factorial choose times
    plus minus over modulo pair pairs double twice base
"""
SCALES = frozenset(_SCALE_WORDS.split())
"""Words that change the number before them: never a unit."""
CURRENCIES = {r"\$": "dollar", "$": "dollar", "€": "euro", r"\euro": "euro", "£": "sterling", r"\pounds": "sterling"}
CURRENCIES |= {"¥": "yen", "₹": "rupee"}

MAX_FACTORS = 6
"""Factors of one unit, as in `kg\\cdot m/s^2`; what is longer is no unit."""
POWER = r"(?:\^\{-?\d\})?"
PLAIN_WORDS = "|".join(sorted(ALIASES, key=len, reverse=True))
TRAILING = re.compile(
    rf"(?:\\?%|\^\{{\\circ\}}(?:\\text\{{[CF]\}}|[CF])?|\\text\{{[A-Za-z./°-]+\d?\}}{POWER}"
    rf"|(?<![A-Za-z\\])(?:per|square|sq|cubic)?(?:{PLAIN_WORDS}){POWER}(?:/(?:{PLAIN_WORDS}|[hs]){POWER})?)$",
    re.IGNORECASE,
)
LEADING = re.compile(r"([-+]?)\\?(?:text\{)?(\\\$|\\euro|\\pounds|[$€£¥₹])\}?([-+]?)")


def split_unit(text: str) -> tuple[str, str | None]:
    """(the canonical text without its unit, the unit's name or None); the text is never left empty."""
    unit: str | None = None
    leading = LEADING.match(text)
    if leading is not None and leading.end() < len(text):
        unit = CURRENCIES[leading.group(2)]
        text = leading.group(1) + leading.group(3) + text[leading.end() :]
    parts: list[str] = []
    while len(parts) < MAX_FACTORS and (trailing := TRAILING.search(text)) is not None:
        rest = text[: trailing.start()]
        joint = rest.rstrip("/").removesuffix(r"\cdot")
        if not joint or joint[-1] in "+-^_{(=<>," or re.search(r"\d|[A-Za-z)}\]]", joint) is None:
            break
        if trailing.group().removeprefix(r"\text{").rstrip("}").lower() in SCALES:
            break
        parts.append(("/" if rest.endswith("/") else "") + trailing.group())
        text = joint
    if parts:
        unit = unit_name("".join(reversed(parts))) if unit is None else unit
    return text, unit


def unit_name(text: str) -> str:
    """One name for a unit's spellings; words that are no known unit name themselves, without a plural s."""
    text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text).lower()
    if "circ" in text:
        return {"c": "celsius", "f": "fahrenheit"}.get(text[-1], "degree")
    text = text.replace("\\%", "%").replace("%", "percent").replace(r"\cdot", "").rstrip(".")
    power = ""
    for word, exponent in (("square", "2"), ("sq.", "2"), ("sq", "2"), ("cubic", "3")):
        if text.startswith(word):
            text, power = text.removeprefix(word), f"^{{{exponent}}}"
            break
    text = re.sub(r"(?<=[a-z])per(?=[a-z])", "/", text) if text not in ALIASES else text
    words = [_word(word) for word in text.split("/")]
    return "/".join(words) + power


def _word(text: str) -> str:
    word, caret, exponent = text.partition("^")
    if not caret and (digit := re.search(r"\d$", word)) is not None:
        word, caret, exponent = word[:-1], "^", f"{{{digit.group()}}}"
    known = ALIASES.get(word) or SHORT.get(word) or (word[:-1] if len(word) > 3 and word.endswith("s") else word)
    return known + caret + exponent


def units_conflict(first: str | None, second: str | None) -> bool:
    """Whether both are named and name different units; a temperature written with a bare degree mark agrees."""
    if first is None or second is None or first == second or "unit" in (first, second):
        return False
    return not ({first, second} <= {"degree", "celsius"} or {first, second} <= {"degree", "fahrenheit"})
