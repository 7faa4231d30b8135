"""Numbers, units, shapes and the symbolic judge, part by part."""

from __future__ import annotations

from fractions import Fraction

import pytest

from broadreach.verify import GradingPool, grade, symbolic
from broadreach.verify.math_equal import MathOptions, all_of, any_of, equivalent, matching, math_key, vote_key
from broadreach.verify.math_text import canonical
from broadreach.verify.math_value import read_value
from broadreach.verify.rationals import TooLargeError, read_rational
from broadreach.verify.units import split_unit, units_conflict

EXACT = MathOptions()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17", 17),
        ("-.5", Fraction(-1, 2)),
        ("17.", 17),
        (r"\frac43", Fraction(4, 3)),
        (r"\dfrac{-1}{2}", Fraction(-1, 2)),
        (r"3\frac{1}{2}", Fraction(7, 2)),
        ("3 1/2", Fraction(7, 2)),
        ("-3 1/2", Fraction(-7, 2)),
        ("1 000 000", 1_000_000),
        ("12 345.5", Fraction(24_691, 2)),
        (r"46\,350", 46_350),
        ("1,200", 1_200),
        ("7.2e-3", Fraction(72, 10_000)),
        (r"7.2\times10^{3}", 7_200),
        ("-2^{2}", -4),
        ("2^6 * 3^5", 64 * 243),
        ("(2^3)(3^4)", 648),
        ("5!", 120),
        (r"\binom{6}{2}", 15),
        ("1½", Fraction(3, 2)),
        ("２３", 23),
        ("0" * 5_000 + "7", 7),
    ],
)
def test_exact_rationals(text: str, value: Fraction | int) -> None:
    assert read_rational(canonical(text)) == value


@pytest.mark.parametrize(
    "text", ["12 34", "1,2", "٣", "²", r"\frac{1}{0}", "3 5", r"3\frac{7}{2}", "x", "1.2.3", "(3", ""]
)
def test_not_a_rational(text: str) -> None:
    assert read_rational(canonical(text)) is None


@pytest.mark.parametrize("text", ["9^{9^{9^{9}}}", "((1000!)!)!", "9" * 50_000, "2e99999", "(" * 50 + "1" + ")" * 50])
def test_what_is_too_large_is_refused_before_it_is_computed(text: str) -> None:
    with pytest.raises(TooLargeError):
        read_rational(text)


@pytest.mark.parametrize(
    ("text", "rest", "unit"),
    [
        (r"15\mbox{ cm}^2", "15", "cm^{2}"),
        ("12 square inches", "12", "inch^{2}"),
        (r"\$32,\!348", "32348", "dollar"),
        (r"90^\circ", "90", "degree"),
        (r"25^{\circ} \mathrm{C}", "25", "celsius"),
        (r"8 \%", "8", "percent"),
        ("10 cm", "10", "cm"),
        ("6m", "6m", None),
        (r"(2,\infty)", r"(2,\infty)", None),
        (r"\text{cm}", r"\text{cm}", None),
    ],
)
def test_units_are_split_off(text: str, rest: str, unit: str | None) -> None:
    assert split_unit(canonical(text)) == (rest, unit)


def test_units_conflict_only_when_both_are_named() -> None:
    assert units_conflict("cm", "m")
    assert not units_conflict("cm", None)
    assert not units_conflict("degree", "celsius")
    assert units_conflict("fahrenheit", "celsius")


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        ("1,2,3", "list", 3),
        ("27 and 64", "list", 2),
        (r"\{1\pm\sqrt{5},-2\}", "set", 3),
        ("(1,2]", "tuple", 2),
        (r"(-\infty,0)\cup\{1\}", "union", 2),
        (r"x<1 \text{ or } x>3", "union", 2),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "matrix", 4),
        ("x=5", "equation", 2),
        (r"-1<x\le 4", "relation", 3),
        ("52_8", "based", 0),
        (r"\text{even}", "word", 0),
        ("2x+1", "expression", 0),
        (r"-\infty", "infinity", 0),
        ("9^{9^{9^{9}}}", "refused", 0),
        ("3:5:7", "tuple", 3),
        (r"\frac94 \text{ OR } 2.25", "alternatives", 2),
    ],
)
def test_shapes(text: str, kind: str, count: int) -> None:
    value = read_value(text)
    assert (value.kind, len(value.items)) == (kind, count)


def test_three_valued_logic() -> None:
    assert all_of([True, None, False]) is False
    assert all_of([True, None]) is None
    assert any_of([False, None, True]) is True
    assert any_of([False, None]) is None
    assert matching(2, 2, lambda row, column: row != column) is True
    assert matching(2, 2, lambda row, column: None if row == column else False) is None
    assert matching(2, 2, lambda row, column: column == 0) is False


def test_votes_for_one_value_are_one_vote() -> None:
    for spellings in (
        ("7", "7.0", r"\$7", "x=7", r"7\%", r"\text{7}"),
        ("1,2", r"\{2,1\}", "2 and 1"),
        ("(-\\infty,4)", "x<4", "4>x"),
        ("(1,2)", r"\left( 1, \; 2 \right)"),
        (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{bmatrix} 1 \\ 2 \end{bmatrix}"),
    ):
        assert len({math_key(spelling, EXACT) for spelling in spellings}) == 1
    assert math_key("1,2", EXACT) != math_key("12", EXACT)
    assert math_key("52_8", EXACT) != math_key("52", EXACT)
    assert len(vote_key(read_value("2^{9999}"))) < 100


def test_this_process_leaves_formulas_to_the_judge() -> None:
    assert equivalent(r"2\sqrt{3}", r"\sqrt{12}", EXACT) is None
    assert equivalent(r"2\sqrt{3}", "3", EXACT) is None
    assert equivalent("x+1", "y+1", EXACT) is False
    assert equivalent("3", "x+3", EXACT) is False
    assert equivalent("343,512", "512,343", MathOptions(thousands=False)) is True


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        (r"2\sqrt{3}", r"\sqrt{12}", True),
        (r"\frac{\pi}{2}", "1.5707963", False),
        (r"x^2-1", "(x-1)(x+1)", True),
        (r"\sqrt{\frac1n}", r"\frac{1}{\sqrt{n}}", True),
        (r"\sqrt{x^2}", "x", False),
        (r"\sin(2x)", r"2\sin(x)\cos(x)", True),
        ("3+4i", "4i+3", True),
        ("2x-y+3=0", "y=2x+3", True),
        ("2x-y+3=0", "y=2x-3", False),
        ("x^2+y^2<4", "4>y^2+x^2", True),
        ("x^2+y^2<4", "x^2+y^2>4", False),
        (r"e^{\pi\sqrt{163}}", "262537412640768744", False),
        (r"\int_0^1 x dx", r"\int_0^1 t dt", False),
        (r"\frac{1}{e^{100}}", r"\frac{1}{e^{101}}", False),
        (r"\log_2 8", "3", True),
        (r"\sqrt{2}", r"\frac{", False),
    ],
)
def test_the_symbolic_judge(gold: str, answer: str, same: bool) -> None:
    assert equivalent(gold, answer, EXACT, symbolic.judge) is same


def test_a_tolerance_reaches_the_symbolic_judge() -> None:
    assert equivalent("1.41", r"\sqrt{2}", MathOptions(rel_tol=0.01), symbolic.judge) is True
    assert equivalent("1.41", r"\sqrt{2}", EXACT, symbolic.judge) is False


def test_exponents_in_exponents_are_counted() -> None:
    assert symbolic.exponent_depth("x^{y^{z}}") == 2
    assert symbolic.too_hard("x^{x^{x^{x}}}")
    assert not symbolic.too_hard("x^{2n}")


@pytest.mark.parametrize(
    ("gold", "answers", "others"),
    [
        (r"\text{Yes}", ["yes", r"\text{yes}", "YES", r"\textbf{Yes}"], ["no", r"\text{no}"]),
        ("odd", ["Odd", r"\text{odd}", r"\text{ODD}"], ["even", r"\text{even}", "doo"]),
        (r"\text{DNE}", ["DNE", "dne"], ["DN"]),
        (r"\text{May}", ["May", "may"], ["March"]),
        ("xy", ["xy"], ["XY", "xz"]),
        (r"\frac13", [r"0.\overline{3}", r".\overline{3}", r"0.\bar3"], ["0.3", r"0.\overline{34}"]),
        (r"-\frac{1}{6}", [r"-0.1\overline{6}"], [r"0.1\overline{6}", r"-0.\overline{16}"]),
        ("1", [r"0.\overline{9}"], ["0.9999999"]),
        ("10", ["10 apples", "$10$ apples", r"10\text{ apples}", "10 apples."], ["10 million", "10 halves", "10xyzw"]),
        (r"10\text{ apples}", ["10 apples", "10"], ["10 oranges", r"10\text{ million}"]),
        (r"10\text{ million}", ["10 million"], ["10", "10 apples"]),
        ("2", ["2 solutions"], ["2 squared", "about 2 apples", "2 dozen"]),
    ],
)
def test_words_repeating_decimals_and_plain_units(gold: str, answers: list[str], others: list[str]) -> None:
    assert [answer for answer in answers if equivalent(gold, answer, MathOptions()) is not True] == []
    assert [answer for answer in others if equivalent(gold, answer, MathOptions()) is True] == []


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("1", "1+e^{-1000}", False),
        ("1", r"\tanh(1000)", False),
        ("x", "x+10^{-30}", False),
        (r"\sqrt{6}", r"\sqrt{2}\sqrt{3}", True),
        (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}", True),
        (r"\frac{1}{2}", r"\cos 60^\circ", True),
        (r"\frac{1}{2}", r"\cos 60", False),
        (r"\sin 20^\circ", r"\cos(70^\circ)", True),
        (r"\frac{\sqrt{6}+\sqrt{2}}{4}", r"\sin 75^\circ", True),
        ("5", r"\phantom{5}", False),
        ("5", r"5\phantom{0}", True),
        ("42", r"4\boxed{2}", False),
        ("42", r"\boxed{42}", True),
    ],
)
def test_close_is_not_equal_and_what_is_not_printed_does_not_count(
    pool: GradingPool, gold: str, answer: str, right: bool
) -> None:
    score = grade("boxed_math", rf"\boxed{{{answer}}}", gold, pool=pool)
    assert (score.correct, score.error) == (right, None)


def test_a_spoken_unit_votes_like_the_number() -> None:
    assert math_key("10 apples", MathOptions()) == math_key("10", MathOptions())
    assert math_key(r"\text{Yes}", MathOptions()) == math_key("yes", MathOptions())
    assert math_key(r"0.\overline{3}", MathOptions()) == math_key(r"\frac13", MathOptions())
