"""Every grader case, ours and those handed to us: one line of JSON is one test."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from broadreach.types import Score
from broadreach.verify import FAMILIES, GradingPool, Item, grade

ROOT = Path(__file__).parents[2]
HANDED = Path(os.environ.get("BROADREACH_CASES", ROOT / "../shared/cases/handed"))
FOLDERS = {"own": ROOT / "tests/cases", "handed": HANDED}
FILES = ("math", "choice", "answer_tag", "countdown")
QUICK_LIMITS = {"cpu_seconds": 1, "wall_seconds": 4.0}
"""For hostile programs in the fast tests; `slow` runs them under the real limits."""


def cases(folder: str, name: str) -> list[dict[str, Any]]:
    path = FOLDERS[folder] / f"{name}.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def marked(names: tuple[str, ...]) -> list[Any]:
    found = [pytest.param(case, id=case["id"]) for f in FOLDERS for name in names for case in cases(f, name)]
    if not any(cases("handed", name) for name in names):
        reason = f"no handed cases in {HANDED} (set BROADREACH_CASES)"
        found.append(pytest.param(None, id=f"handed-{names[0]}", marks=pytest.mark.skip(reason=reason)))
    return found


def item_of(case: dict[str, Any], **extra: Any) -> Item:
    data = {name: value for name, value in case["input"].items() if name != "response"}
    return Item(case["family"], case["input"]["response"], case["gold"] or "", {**data, **extra})


def check(case: dict[str, Any], score: Score) -> None:
    assert (score.format_ok, score.correct) == (case["expected"]["format_ok"], case["expected"]["correct"]), case["why"]
    assert score.reward == (1.0 if score.correct else 0.1 if score.format_ok else 0.0)
    assert (score.extracted is not None) == score.format_ok
    assert score.error is None or score.timed_out


@pytest.mark.parametrize("case", marked(FILES))
def test_case_gets_its_verdict_in_time(case: dict[str, Any], pool: GradingPool) -> None:
    item = item_of(case)
    started = time.monotonic()
    score = grade(item.family, item.response, item.gold, item.data, pool=pool)
    assert time.monotonic() - started < case.get("max_seconds", 10)
    check(case, score)


@pytest.fixture(scope="module")
def code_scores(pool: GradingPool) -> dict[str, Score]:
    """All programs at once, so that those that sleep or loop do so in parallel."""
    found = [case for folder in FOLDERS for case in cases(folder, "code")]
    items = [item_of(case, **(QUICK_LIMITS if case.get("hostile") else {})) for case in found]
    return {case["id"]: score for case, score in zip(found, pool.grade_many("code", items), strict=True)}


@pytest.mark.needs_bubblewrap
@pytest.mark.parametrize("case", marked(("code",)))
def test_program_gets_its_verdict(case: dict[str, Any], code_scores: dict[str, Score]) -> None:
    check(case, code_scores[case["id"]])


@pytest.mark.slow
@pytest.mark.needs_bubblewrap
@pytest.mark.parametrize("case", [one for one in marked(("code",)) if one.values[0] and one.values[0].get("hostile")])
def test_hostile_program_is_stopped_under_the_real_limits(case: dict[str, Any]) -> None:
    with GradingPool(workers=1) as own:
        started = time.monotonic()
        check(case, own.grade_many("code", [item_of(case)])[0])
        assert time.monotonic() - started < case["max_seconds"]


def test_there_are_enough_cases_of_our_own_and_a_third_are_near_misses() -> None:
    own = [case for name in (*FILES, "code") for case in cases("own", name)]
    assert len(own) >= 274
    assert len({case["id"] for case in own}) == len(own)
    near_misses = [c for c in own if c["expected"]["format_ok"] and not c["expected"]["correct"]]
    assert len(near_misses) >= len(own) / 3
    assert {case["family"] for case in own} <= set(FAMILIES)
