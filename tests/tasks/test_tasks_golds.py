"""Every gold scores 1 by the path of a model's response, and no near miss does."""

from __future__ import annotations

import shutil

import pytest

from broadreach.config import TaskSettings, VerifySettings
from broadreach.tasks.check import check_task
from broadreach.tasks.registry import get_task

pytestmark = pytest.mark.usefixtures("local_data")

FAST = [
    ("gsm8k", {}, "train", 7473),
    ("gsm8k", {}, "test", 1319),
    ("svamp", {}, "train", 700),
    ("svamp", {}, "test", 300),
    ("math500", {}, "test", 500),
    ("aime24", {}, "test", 30),
    ("aime25", {}, "test", 30),
    ("amc23", {}, "test", 40),
    ("commonsense_qa", {}, "validation", 1221),
    ("commonsense_qa", {}, "train", 9741),
    ("hotpotqa", {}, "validation", 100),
    ("countdown", {"variant": "uft"}, "test", 1024),
    ("minerva", {}, "test", 272),
    ("olympiadbench", {}, "test", 675),
    ("deepscaler", {}, "train", 1206),
]
SLOW = [
    ("countdown", {}, "test", 2001),
    ("countdown", {}, "train", 8001),
    ("countdown", {"variant": "uft"}, "train", 10240),
    ("deepscaler", {"variant": "math"}, "train", 7470),
    ("deepscaler", {"variant": "aime"}, "train", 975),
]
PROGRAMS = [
    (f"mbpp{kind}", split) for kind in ("", "-sanitized") for split in ("train", "test", "validation", "prompt")
]


def _assert_proved(name: str, options: dict[str, str], split: str, rows: int, settings: VerifySettings) -> None:
    result = check_task(get_task(TaskSettings(name=name, options=options)), split, settings)
    assert result.problems == result.golds == rows
    assert result.failed_golds == ()
    assert result.accepted_misses == ()
    assert result.near_misses > 0


@pytest.mark.parametrize(("name", "options", "split", "rows"), FAST, ids=lambda value: str(value))
def test_every_gold_scores_one_and_no_near_miss(name: str, options: dict[str, str], split: str, rows: int) -> None:
    _assert_proved(name, options, split, rows, VerifySettings())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "split", "rows"), SLOW, ids=lambda value: str(value))
def test_every_gold_of_the_large_files_scores_one(name: str, options: dict[str, str], split: str, rows: int) -> None:
    _assert_proved(name, options, split, rows, VerifySettings())


@pytest.mark.slow
@pytest.mark.needs_bubblewrap
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.parametrize(("name", "split"), PROGRAMS)
def test_every_program_of_mbpp_passes_its_tests(name: str, split: str) -> None:
    task = get_task(TaskSettings(name=name))
    result = check_task(task, split, near_miss_problems=3)
    assert result.golds == result.problems == len(task.problems(split))
    assert result.failed_golds == ()
    assert result.accepted_misses == ()


def test_hotpotqa_golds_of_the_whole_development_set_score_one() -> None:
    """7,405 golds, among them "The The" and "!!!", which the official normalisation empties."""
    import json

    from broadreach.tasks.golds import solution
    from broadreach.tasks.grading import Grader
    from broadreach.tasks.sources import data_dir
    from broadreach.types import Problem, Response

    directory = data_dir()
    assert directory is not None
    rows = json.loads((directory / "hotpotqa" / "hotpot_dev_v1_simplified.json").read_text())
    problems = [Problem(str(index), row["question"], row["answer"]) for index, row in enumerate(rows)]
    texts = [str(solution("answer_tag", problem)) for problem in problems]
    with Grader(get_task(TaskSettings(name="hotpotqa"))) as grader:
        scores = grader.grade(problems, [Response(text, (), "stop", 0) for text in texts])
    assert len(scores) == 7405
    assert all(score.reward == 1 and score.correct for score in scores)
