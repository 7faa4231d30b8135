"""The known overlaps, repeats and bad golds of data/MANIFEST.md are found, and training on test problems is refused."""

from __future__ import annotations

from typing import Any

import pytest

from broadreach.config import TaskSettings
from broadreach.tasks import golds
from broadreach.tasks.dataset import DatasetTask
from broadreach.tasks.hygiene import Hygiene, duplicates, examine, overlaps, training_problems
from broadreach.tasks.hygiene_keys import normalise
from broadreach.tasks.registry import get_task
from broadreach.types import Problem, UserError


def _task(name: str, **options: Any) -> DatasetTask:
    task = get_task(TaskSettings(name=name, options=options))
    assert isinstance(task, DatasetTask)
    return task


def _report(name: str, **options: Any) -> Hygiene:
    return examine(_task(name, **options))[1]


@pytest.mark.usefixtures("local_data")
class TestKnownFacts:
    def test_dsr_sub_has_one_empty_gold_two_cut_off_two_repeats_and_one_olympiad_problem(self) -> None:
        report = _report("deepscaler")
        assert (report.rows, report.kept) == (1209, 1206)
        assert sorted(reason.split()[0] for _, reason in report.unusable) == ["cut", "cut", "empty"]
        assert [first for _, first in report.duplicates] == ["train-136", "train-136"]
        assert [test.partition(":")[0] for _, test in report.overlaps] == ["olympiadbench"]

    def test_rllm_math_has_two_null_and_two_empty_answers_and_shares_nothing_with_math500(self) -> None:
        report = _report("deepscaler", variant="math")
        assert {identity for identity, _ in report.unusable} == {
            "train-886",
            "train-1009",
            "train-5328",
            "train-5330",
        }
        assert report.overlaps == ()

    def test_six_aime_problems_are_in_math500(self) -> None:
        report = _report("deepscaler", variant="aime")
        assert [test.partition(":")[0] for _, test in report.overlaps] == ["math500"] * 6

    @pytest.mark.parametrize("variant", ["tinyzero", "uft"])
    def test_five_countdown_problems_are_shared_in_each_pair(self, variant: str) -> None:
        assert len(_report("countdown", variant=variant).overlaps) == 5

    def test_tinyzero_test_lies_wholly_inside_uft_train(self) -> None:
        test = _task("countdown").problems("test")
        assert len(overlaps(test, _task("countdown", variant="uft").problems("train"))) == 2001

    def test_three_mbpp_training_tasks_have_the_text_of_a_test_task(self) -> None:
        assert [identity for identity, _ in _report("mbpp").overlaps] == ["602", "704", "872"]

    @pytest.mark.parametrize("name", ["gsm8k", "svamp", "commonsense_qa", "mbpp-sanitized"])
    def test_the_other_training_sets_share_nothing_with_their_tests(self, name: str) -> None:
        report = _report(name)
        assert report.overlaps == report.unusable == report.duplicates == ()

    def test_training_on_test_problems_is_refused_unless_allowed_or_dropped(self) -> None:
        settings = TaskSettings(name="countdown")
        for allowed in ({}, {"allow_overlap": ["mbpp"]}, {"allow_overlap": False}):
            settings = TaskSettings(name="countdown", **allowed)
            wanted = r'5 training problems are also test problems .*task\.allow_overlap = \["countdown"'
            with pytest.raises(UserError, match=wanted):
                training_problems(get_task(settings), settings)
        for allowed in ({"allow_overlap": ["countdown"]}, {"allow_overlap": True}, {"allow_overlap": "countdown"}):
            settings = TaskSettings(name="countdown", allow_duplicates=True, **allowed)
            assert len(training_problems(get_task(settings), settings)[0]) == 8001
        dropped = TaskSettings(name="countdown", options={"drop_overlap": True}, allow_duplicates=["countdown"])
        problems, report = training_problems(get_task(dropped), dropped)
        assert len(problems) == 7996
        assert report.overlaps == ()

    def test_an_overlap_is_allowed_by_the_name_of_the_other_test_set(self) -> None:
        settings = TaskSettings(name="deepscaler", allow_duplicates=["deepscaler"])
        with pytest.raises(UserError, match=r'1 training problems are also .*allow_overlap = \["olympiadbench"\]'):
            training_problems(get_task(settings), settings)
        allowed = settings.model_copy(update={"allow_overlap": ("olympiadbench",)})
        assert len(training_problems(get_task(allowed), allowed)[0]) == 1206

    def test_repeated_problems_are_refused_unless_allowed_by_name_or_dropped(self) -> None:
        overlap = {"drop_overlap": True}
        for allowed in ({}, {"allow_duplicates": ["countdown"]}):
            settings = TaskSettings(name="deepscaler", options=overlap, **allowed)
            with pytest.raises(UserError, match=r'2 training problems repeat .*allow_duplicates = \["deepscaler"\]'):
                training_problems(get_task(settings), settings)
        for options, allowed, count in (
            (overlap, {"allow_duplicates": ["deepscaler"]}, 1205),
            ({**overlap, "drop_duplicates": True}, {}, 1203),
        ):
            settings = TaskSettings(name="deepscaler", options=options, **allowed)
            assert len(training_problems(get_task(settings), settings)[0]) == count

    def test_worked_examples_in_use_are_not_trained_on(self) -> None:
        for name, rows in (("gsm8k", 7473), ("svamp", 700)):
            for shots in (0, 2):
                task = get_task(TaskSettings(name=name, shots=shots))
                shown = {problem.id for problem, _ in task.worked_examples()[:shots]}
                problems = task.problems("train")
                assert len(problems) == rows - shots
                assert not shown & {problem.id for problem in problems}

    def test_worked_examples_are_training_rows_with_the_right_answer(self) -> None:
        for name in ("gsm8k", "svamp"):
            task = get_task(TaskSettings(name=name))
            rows = {problem.id: problem for problem in task.problems("train")}
            assert len(task.worked_examples()) >= 2
            for problem, answer in task.worked_examples():
                assert rows[problem.id] == problem
                assert task.score(problem, answer).correct


def _problem(identity: str, question: str, **data: Any) -> Problem:
    return Problem(identity, question, "1", data)


def test_overlong_prompts_are_left_out_and_counted() -> None:
    settings = TaskSettings(name="nano-chain")
    task = get_task(settings)

    def lengths(problems: Any) -> list[int]:
        return [len(problem.question) for problem in problems]

    limit = 14
    kept, report = training_problems(task, settings, lengths, limit)
    assert 0 < len(kept) == report.kept < report.rows == report.kept + len(report.too_long)
    assert all(len(problem.question) <= limit for problem in kept)
    with pytest.raises(UserError, match="no training problem is left"):
        training_problems(task, settings, lengths, 1)


def test_max_train_keeps_the_first_problems() -> None:
    settings = TaskSettings(name="nano-chain", max_train=7)
    task = get_task(settings)
    assert training_problems(task, settings)[0] == task.problems("train")[:7]


def test_typesetting_does_not_hide_a_repeat_but_meaning_does() -> None:
    assert normalise(r"Find $\left(\dfrac{1}{2}\right)$.") == normalise(r"find \( ( \frac{1}{2} ) \)")
    for first, second in (
        ("3+4", "3-4"),
        ("88/(4/2)", "88/4/2"),
        ("1.5 m", "15 m"),
        ("x<2", "x>2"),
        ("(1,2)", "(12)"),
        ("5 8 9", "58 9"),
    ):
        assert normalise(first) != normalise(second)


def test_countdown_repeats_ignore_the_order_of_the_numbers() -> None:
    first = _problem("a", "Numbers: 3, 4, 5\nTarget: 12", numbers=[3, 4, 5], target=12)
    second = _problem("b", "Numbers: 5, 3, 4\nTarget: 12", numbers=[5, 3, 4], target=12)
    third = _problem("c", "Numbers: 5, 3, 4\nTarget: 13", numbers=[5, 3, 4], target=13)
    assert duplicates([first, second, third]) == [("b", "a")]
    assert overlaps([third], [first, second]) == []
    assert overlaps([second], [first]) == [("b", "a")]


@pytest.mark.parametrize("gold", ["", "  ", "$$", "None", "null", r"\div", "+", r"\frac{1}{2", "3 +", r"2 \cdot", "{1"])
def test_unusable_golds_are_recognised(gold: str) -> None:
    assert golds.unusable(gold) is not None


@pytest.mark.parametrize(
    "gold", ["0", "-3", "!!!", r"\pi", r"\left\{1,2\right.", "[0,1)", "]0,1[", "x+1", "None of them", "A"]
)
def test_usable_golds_are_kept(gold: str) -> None:
    assert golds.unusable(gold) is None
