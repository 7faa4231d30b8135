"""Tests taken apart: the expected side never runs beside the candidate, and what cannot be taken apart is marked."""

from __future__ import annotations

from typing import Any

import pytest

from broadreach.verify.code_steps import steps_of
from broadreach.verify.code_tests import count_inside, limits_of, run_tests
from broadreach.verify.sandbox import Limits, find_sandbox

NEEDS = pytest.mark.needs_bubblewrap
SQUARE = "def f(x): return x * x"
ALWAYS_RIGHT = """
class A:
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
def f(x): return A()
"""
TESTS = {
    "and": ["assert f(2) == 4 and f(3) == 9"],
    "not or": ["assert not (f(2) != 4 or f(3) != 9)"],
    "for": ["for a, b in [(2, 4), (3, 9)]: assert f(a) == b"],
    "for over a name": ["cases = [(2, 4)]\nfor a, b in cases:\n    assert f(a) == b"],
    "for with enumerate": ["for i, b in enumerate([0, 1, 4]): assert f(i) == b"],
    "for with zip": ["for a, b in zip([1, 2], (1, 4)): assert f(a) == b"],
    "for with items": ["for a, b in {2: 4, 3: 9}.items(): assert f(a) == b"],
    "check": ["def check(c):\n    assert c(2) == 4\n    assert c(3) == 9\n\ncheck(f)"],
    "check in another test": [
        "def check(c):\n    for i in range(3):\n        r = c(i)\n        assert r == i * i",
        "check(f)",
    ],
    "all": ["assert all(f(a) == a * a for a in range(5))"],
    "distance": ["assert abs(f(2) - 4) < 1e-6"],
    "between": ["assert 3 < f(2) <= 4"],
    "module": ["assert f(9) == math.sqrt(6561)"],
    "close": ["assert math.isclose(f(3), 3 ** 2)"],
    "computed": ["assert f(3) == sum([4, 5])"],
}


def passes(code: str, tests: list[str], **data: Any) -> bool:
    verdict = run_tests(find_sandbox(), code, {"tests": tests, "cpu_seconds": 2, "wall_seconds": 5.0, **data})
    assert verdict.error is None
    return verdict.correct


@NEEDS
@pytest.mark.parametrize("tests", TESTS.values(), ids=TESTS)
def test_every_form_passes_the_right_program_and_no_other(tests: list[str]) -> None:
    assert count_inside({"tests": tests}) == 0
    assert passes(SQUARE, tests)
    assert not passes(ALWAYS_RIGHT, tests)
    assert not passes("def f(x): return x * x + (x > 1)", tests)


@NEEDS
def test_patched_builtins_and_modules_do_not_reach_the_expected_side() -> None:
    patched = "import builtins\nbuiltins.all = lambda *a: True\ndef f(a): return 0"
    assert not passes(patched, ["assert all(f(a) == a * a for a in range(5))"])
    patched = "import math\nmath.sqrt = lambda x: 0.0\ndef f(x): return 0.0"
    for imports in ("", ["import math"]):
        assert not passes(patched, ["assert f(9) == math.sqrt(81)"], imports=imports)
    assert passes("def f(x): return 9.0", ["assert f(9) == math.sqrt(81)"])


@NEEDS
def test_names_that_only_the_candidate_has_still_work_and_are_marked() -> None:
    own = ["assert f(1) == g(1)"]
    assert passes("def g(x): return x\ndef f(x): return g(x)", own)
    assert count_inside({"tests": own}) == 1
    shadowing = ["assert sum([1, 2]) == sum([2, 1])", "assert sum([4]) == 4"]
    assert passes("def sum(x): return len(x) * 2 if len(x) > 1 else 4", shadowing)
    assert passes("from math import *\ndef f(x): return sqrt(x)", ["assert f(81) == sqrt(81)"])


@NEEDS
def test_an_expected_side_that_fails_alone_is_evaluated_beside_the_candidate() -> None:
    broken = ["assert f(1) == sorted([1, 'a'])", "assert f(1) == sum([0, 1])"]
    assert not passes("def f(x): return 1", broken)
    assert passes("def f(x): return 1", broken[1:])


@pytest.mark.parametrize(
    ("test", "inside"),
    [
        ("assert f(1) == 2", 0),
        ("assert f(1) or g(2)", 1),
        ("assert is_even(2)", 1),
        ("if f(1):\n    assert g(1) == 2", 1),
        ("try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass", 1),
        ("def check(c):\n    if c(1):\n        assert c(2) == 2\ncheck(f)", 1),
        ("for a in f(3): assert a == 1", 1),
        ("for a in [1, 2]:\n    a = f(a)\n    assert a == 1", 1),
        ("for a in [1, 2]:\n    if a: break\n    assert f(a) == 1", 1),
        ("x = f(1)\nassert x == 2", 0),
    ],
)
def test_what_only_the_candidate_can_judge_is_counted(test: str, inside: int) -> None:
    assert count_inside({"tests": [test]}) == inside


def test_a_loop_too_long_to_write_out_stays_a_loop() -> None:
    assert [step.mode for step in steps_of("for i in range(5000): assert f(i) == i")] == ["run"]
    assert len(steps_of("for i in range(500): assert f(i) == i")) == 500


def test_tests_given_as_one_text_are_an_error_that_says_so() -> None:
    verdict = run_tests(find_sandbox(True), "x = 1", {"tests": "assert x == 1"})
    assert verdict.error is not None and "list of texts" in verdict.error


def test_the_deadline_lowers_the_limits_of_a_program_and_never_raises_them() -> None:
    assert limits_of({}, None) == Limits()
    assert limits_of({"cpu_seconds": 30, "wall_seconds": 90.0}, None) == Limits(30, 90.0)
    assert limits_of({}, 1.5) == Limits(2, 1.5)
    assert limits_of({"cpu_seconds": 1, "wall_seconds": 3.0}, 60.0) == Limits(1, 3.0)
