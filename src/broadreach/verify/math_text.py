"""Mathematical text in one spelling: characters folded, LaTeX synonyms merged, then cut into tokens.

Compatibility characters are folded one at a time, because folding a whole string glues superscripts and vulgar
fractions to the digit before them (verifiers.md, amendment 1).
"""

from __future__ import annotations

import re
import unicodedata

from broadreach.verify.math_arguments import brace_arguments
from broadreach.verify.units import SCALES

CHARACTERS = {
    **dict.fromkeys("−–‐‑‒﹣－", "-"),
    **dict.fromkeys("×⋅·∙✕", r"\cdot "),
    "÷": "/",
    "∕": "/",
    "⁄": "/",
    "√": r"\sqrt ",
    "∞": r"\infty ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "≈": r"\approx ",
    "±": r"\pm ",
    "∓": r"\mp ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "ℝ": r"\mathbb{R}",
    "°": r"^\circ ",
    "º": r"^\circ ",
    "∘": r"\circ ",
    "℃": r"^\circ C",
    "π": r"\pi ",
    "θ": r"\theta ",
    "α": r"\alpha ",
    "β": r"\beta ",
    "γ": r"\gamma ",
    "λ": r"\lambda ",
    "μ": r"\mu ",
    "σ": r"\sigma ",
    "φ": r"\phi ",
    "ω": r"\omega ",
    "ρ": r"\rho ",
    "τ": r"\tau ",
    "Δ": r"\Delta ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "′": "'",
    "’": "'",
}
FOLDED_FORMS = ("<wide>", "<narrow>", "<noBreak>", "<font>", "<compat>")
SUPERSCRIPTS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ]+")
SUBSCRIPTS = re.compile("[₀₁₂₃₄₅₆₇₈₉₊₋ₙᵢ]+")

FONTS = r"\\(?:text(?:rm|bf|it|normal|sf|tt|up)?|mbox|hbox|math(?:rm|bf|it|sf|tt|normal)|emph|operatorname\*?)"
SPACING = "q?quad|thinspace|enspace|medspace|displaystyle|textstyle|limits|hfill"
PHANTOM = re.compile(r"\\[hv]?phantom\s*(?:\{[^{}]*\}|[^\\{}\s])")
"""What is printed as nothing but space, with its argument; with braces inside it is left, and read by nobody."""
SPACES = re.compile(rf"(?<!\\)\\[,;:> ]|\\(?:{SPACING})(?![A-Za-z])|~")
SIZES = re.compile(r"\\(?:left|right|middle|[bB]ig{1,2}[lrm]?)(?![A-Za-z])\s*\.?")
FUNCTIONS = (
    "arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|cot|sec|csc|log|ln|exp|sqrt"
    "|pi|theta|alpha|beta|gamma|lambda|omega|infty"
)
FUNCTION_WORD = re.compile(rf"(?<![A-Za-z\\])({FUNCTIONS})(?![A-Za-z])")
REWRITES = [
    (re.compile(r"(?<![A-Za-z])np\.(?=[a-z])"), ""),
    (re.compile(r"\\boldsymbol|\\bm(?![A-Za-z])|\\displaylines"), ""),
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\[dt]binom(?![A-Za-z])"), r"\\binom"),
    (re.compile(r"\\(?:leqslant|leqq|leq)(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\(?:geqslant|geqq|geq)(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\\(?:neq|not\s*=)"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"!="), r"\\ne "),
    (re.compile(r"\\(?:times|ast|cdotp)(?![A-Za-z])|\*"), r"\\cdot "),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\lbrack(?![A-Za-z])"), "["),
    (re.compile(r"\\rbrack(?![A-Za-z])"), "]"),
    (re.compile(r"\\(?:[lr]?vert)(?![A-Za-z])"), "|"),
    (re.compile(r"\\(?:infin|infinity)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r"\\(?:varnothing)(?![A-Za-z])"), r"\\emptyset "),
    (re.compile(r"\\(?:degree|degrees)(?![A-Za-z])|\^\s*\{\s*\\circ\s*\}|\^\s*\\circ"), r"^\\circ "),
    (re.compile(r"\\(?:bmatrix|vmatrix)"), r"\\pmatrix"),
    (re.compile(r"(begin|end)\s*\{\s*(?:small)?[bvBV]?(?:matrix|array)\s*\}(?:\s*\{[clr|]+\})?"), r"\1{pmatrix}"),
    (re.compile(rf"{FONTS}\s*\{{\s*({FUNCTIONS})\s*\}}"), r"\\\1 "),
    (re.compile(FONTS + r"(?=\s*\{)"), r"\\text"),
    (re.compile(r"\binfinity\b|(?<![A-Za-z\\])inf\b"), r"\\infty "),
    (FUNCTION_WORD, r"\\\1 "),
]
WHOLE_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")
SHORT_WORD = re.compile(r"\s*[A-Za-z]{2,3}\s*")
"""`\\text{odd}` stays a text, because without it `odd` could be a product."""
PLAIN_UNIT = re.compile(r"\A([-+]?(?:\\\$)?\d[\d,.]*(?:/\d+)?|\\frac\{\d+\}\{\d+\}) ([a-z]{4,})\Z")
"""A number and one plain word: `10 apples` is `10\\text{apples}`."""
SEPARATORS = [
    (re.compile(r"\\text\s*\{\s*OR\s*\}|(?<=[\s\d)}])OR(?=[\s\\])"), r" \\ALT "),
    (re.compile(r"\\text\s*\{\s*,?\s*and\s*,?\s*\}|(?<=[\s\d)}\],])and(?=[\s\\])"), r" \\AND "),
    (re.compile(r"\\text\s*\{\s*,?\s*or\s*,?\s*\}|(?<=[\s\d)}\],])or(?=[\s\\])"), r" \\OR "),
]
"""What stands between several answers; an upper-case OR stands between spellings of one answer."""
ROOT_SIGN = re.compile(r"√\s*(\d+(?:\.\d+)?|[A-Za-z])")
NARROWING = re.compile(r"(?<!\\)\\!")
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+|\s+|.", re.DOTALL)
THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])", re.ASCII)


def fold_characters(text: str) -> str:
    """Unicode signs as LaTeX or ASCII; digits beyond ASCII fold only from full-width and font forms."""
    text = SUPERSCRIPTS.sub(lambda m: "^{" + unicodedata.normalize("NFKC", m.group()).replace("−", "-") + "}", text)
    text = SUBSCRIPTS.sub(lambda m: "_{" + unicodedata.normalize("NFKC", m.group()).replace("−", "-") + "}", text)
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(map(_fold_character, text)))


def _fold_character(character: str) -> str:
    if character.isascii():
        return character
    if (known := CHARACTERS.get(character)) is not None:
        return known
    form, _, rest = unicodedata.decomposition(character).partition(" ")
    if form == "<fraction>":
        numerator, _, denominator = unicodedata.normalize("NFKC", character).partition("⁄")
        return rf" \frac{{{numerator}}}{{{denominator}}}" if denominator else character
    if form in FOLDED_FORMS and rest:
        folded = unicodedata.normalize("NFKC", character)
        if folded != character:
            return "".join(map(_fold_character, folded)) if len(folded) == 1 else folded
    return character


def clean(text: str) -> str:
    """The text in one spelling, without dollar signs, sizes and spacing commands; `\\$` stays as a currency mark."""
    text = fold_characters(ROOT_SIGN.sub(r"\\sqrt{\1}", text)).strip().strip("*").strip()
    text = NARROWING.sub("\0", text).replace("{,}", ",")
    text = re.sub(r",\0\s*", ",", text).replace("\0", "")
    text = SPACES.sub(" ", SIZES.sub(" ", PHANTOM.sub(" ", text)))
    text = re.sub(r"(?<!\\)\$|(?<!\\)\\[()\[\]]", " ", text)
    text = " ".join(text.split())
    for pattern, replacement in REWRITES:
        text = pattern.sub(replacement, text)
    text = " ".join(text.split()).rstrip(".,;").strip()
    text = PLAIN_UNIT.sub(_unit_as_text, text)
    while (whole := WHOLE_TEXT.fullmatch(text)) is not None and SHORT_WORD.fullmatch(whole.group(1)) is None:
        text = whole.group(1).strip().rstrip(".,;").strip()
    for pattern, replacement in SEPARATORS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _unit_as_text(match: re.Match[str]) -> str:
    number, word = match.groups()
    return match.group() if word in SCALES else rf"{number}\text{{{word}}}"


def join_thousands(text: str) -> str:
    """`1,200` as `1200`, outside round, square and set brackets (inside them a comma separates)."""
    if "," not in text:
        return text
    pieces, depth, start = [], 0, 0
    for match in re.finditer(r"\\[{}]|[()\[\]]", text):
        if depth == 0:
            pieces.append(THOUSANDS.sub(lambda m: m.group().replace(",", ""), text[start : match.start()]))
        else:
            pieces.append(text[start : match.start()])
        pieces.append(match.group())
        depth = max(0, depth + (1 if match.group() in ("(", "[", r"\{") else -1))
        start = match.end()
    tail = text[start:]
    pieces.append(THOUSANDS.sub(lambda m: m.group().replace(",", ""), tail) if depth == 0 else tail)
    return "".join(pieces)


def tokens_of(text: str) -> list[str]:
    """Commands, escaped characters, digit runs, runs of white space (as one space), single characters."""
    return [" " if token.isspace() else token for token in TOKEN.findall(text)]


def compact(tokens: list[str]) -> str:
    """One spelling per formula: no spaces, except between two digits and between a command and a letter."""
    pieces: list[str] = []
    gap = False
    for token in tokens:
        if token == " ":
            gap = True
            continue
        if pieces:
            last = pieces[-1]
            both_digits = gap and last[-1].isdigit() and token[0].isdigit()
            after_command = last[0] == "\\" and last[-1].isalpha() and token[0].isalpha()
            if both_digits or after_command:
                pieces.append(" ")
        pieces.append(token)
        gap = False
    return "".join(pieces)


def canonical(text: str, thousands: bool = True) -> str:
    """The one spelling of a mathematical text: equal strings mean the same answer.

    `thousands` says whether `343,512` is one number or a list of two: the data set knows, the grader does not
    (verifiers.md, amendment 5).
    """
    cleaned = clean(text)
    return compact(brace_arguments(tokens_of(join_thousands(cleaned) if thousands else cleaned)))
