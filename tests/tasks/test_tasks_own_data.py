"""Tasks from the user's own JSONL file or Hub data set, by configuration alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadreach.config import TaskSettings
from broadreach.tasks.base import Task
from broadreach.tasks.byo_rows import Columns, to_problem
from broadreach.tasks.check import check_task
from broadreach.tasks.instructions import MATH
from broadreach.tasks.registry import get_task
from broadreach.types import Problem, UserError

Make = Callable[..., Task]


@pytest.fixture
def own(tmp_path: Path) -> Make:
    """A `jsonl` task over the given rows (or raw lines)."""

    def make(rows: list[dict[str, Any] | str], reward: str | None = None, **options: Any) -> Task:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return get_task(TaskSettings(name="jsonl", options={"path": str(path), **options}, reward=reward))

    return make


SUMS: list[dict[str, Any] | str] = [{"prompt": f"{i} + {i}?", "answer": 2 * i} for i in range(40)]


def test_a_jsonl_file_becomes_a_task_with_a_fixed_held_out_tenth(own: Make) -> None:
    task = own(SUMS)
    train, test = task.problems("train"), task.problems("test")
    assert (len(train), len(test)) == (36, 4)
    assert not {problem.id for problem in train} & {problem.id for problem in test}
    again = own(SUMS[::-1])
    assert {problem.question for problem in again.problems("test")} == {problem.question for problem in test}
    assert task.messages(test[0])[0]["content"] == MATH
    assert task.score(test[0], f"\\boxed{{{test[0].gold}}}").correct


def test_copies_of_a_prompt_stay_on_one_side(own: Make) -> None:
    task = own(SUMS * 2, test_fraction=0.5)
    train, test = ({problem.question for problem in task.problems(split)} for split in ("train", "test"))
    assert len(train) == len(test) == 20
    assert not train & test


def test_a_test_file_of_its_own(own: Make, tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text('{"prompt": "1+1?", "answer": "2"}\n')
    task = own(SUMS, test_path=str(tmp_path / "test.jsonl"))
    assert (len(task.problems("train")), len(task.problems("test"))) == (40, 1)
    with pytest.raises(UserError, match="a test source or test_fraction, not both"):
        own(SUMS, test_path=str(tmp_path / "test.jsonl"), test_fraction=0.2)
    with pytest.raises(UserError, match=r"no split 'test'.*set task\.options\.test_path"):
        own(SUMS, test_fraction=0).problems("test")


FAMILIES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("boxed_math", {"prompt": "p", "answer": "\\frac{1}{2}"}, {}),
    ("choice", {"prompt": "p", "answer": "B", "options": ["x", "y"]}, {}),
    ("choice", {"prompt": "p", "answer": "y", "options": {"a": "x", "b": "y"}}, {}),
    (
        "choice",
        {"prompt": "p", "answer": "c", "choices": {"label": ["A", "C"], "text": ["x", "y"]}},
        {"columns": {"options": "choices"}},
    ),
    ("answer_tag", {"prompt": "p", "answer": "Lake Tova"}, {}),
    ("exact", {"prompt": "p", "answer": "yes"}, {}),
    ("countdown", {"prompt": "p", "nums": [3, 5, 7], "goal": 56}, {"columns": {"numbers": "nums", "target": "goal"}}),
    ("code", {"prompt": "p", "answer": "def f(x):\n    return x", "prompt_tests": ["assert f(1) == 1"]}, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("family", "row", "options"), FAMILIES, ids=[f"{i}-{case[0]}" for i, case in enumerate(FAMILIES)]
)
def test_every_family_from_configuration_alone(
    own: Make, family: str, row: dict[str, Any], options: dict[str, Any]
) -> None:
    result = check_task(own([row], family=family, test_fraction=0, **options), "train")
    assert result.passed, result
    assert (result.golds, result.problems) == (1, 1)


def test_conversations_and_system_text(own: Make) -> None:
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": "1+1?"},
    ]
    task = own([{"prompt": turns, "answer": 2}], test_fraction=0, system="Be brief.")
    problem = task.problems("train")[0]
    assert problem.question == "1+1?"
    assert task.messages(problem) == [{"role": "system", "content": "Be brief."}, *turns]
    silent = own([{"prompt": "1+1?", "answer": 2}], test_fraction=0, system="")
    assert silent.messages(silent.problems("train")[0]) == [{"role": "user", "content": "1+1?"}]
    with_own = [{"role": "system", "content": "mine"}, {"role": "user", "content": "u"}]
    kept = own([{"prompt": with_own, "answer": 2}], test_fraction=0)
    assert kept.messages(kept.problems("train")[0]) == with_own


def test_worked_examples_from_the_options(own: Make) -> None:
    task = own(SUMS, examples=[{"prompt": "9 + 9?", "response": "\\boxed{18}"}])
    assert [answer for _, answer in task.worked_examples()] == ["\\boxed{18}"]
    with pytest.raises(UserError, match=r"examples\[0\] needs exactly the keys prompt and response"):
        own(SUMS, examples=[{"prompt": "9 + 9?"}])


def test_family_options_reach_the_verifier(own: Make) -> None:
    rows: list[dict[str, Any] | str] = [{"prompt": "p", "answer": "4.5e33"}]
    strict, loose = own(rows, test_fraction=0), own(rows, test_fraction=0, family_options={"float_rel_tol": 0.01})
    answer = "\\boxed{4.51 \\times 10^{33}}"
    assert not strict.score(strict.problems("train")[0], answer).correct
    assert loose.score(loose.problems("train")[0], answer).correct


BAD: list[tuple[list[dict[str, Any] | str], dict[str, Any], str]] = [
    (['{"prompt": "a", "answer": 1}', '{"prompt": "b", "answ'], {}, r"rows\.jsonl: line 2 is not valid JSON"),
    (["[1, 2]"], {}, "line 1 is a JSON list, not an object"),
    ([{"question": "a", "answer": 1}], {}, "row 1: no column 'prompt'; columns there: question, answer"),
    ([{"prompt": "a", "gold": 1}], {}, "row 1: no column 'answer'; columns there: prompt, gold"),
    ([{"prompt": "a", "answer": 1}, {"prompt": "b", "answer": ""}], {}, "row 2: no gold answer in column 'answer'"),
    ([{"prompt": "a", "answer": 1}, "", {"prompt": "b", "answer": None}], {}, "row 3: column 'answer' is empty"),
    ([{"prompt": " ", "answer": 1}], {}, "row 1: the prompt in column 'prompt' is empty"),
    ([{"prompt": ["a"], "answer": 1}], {}, "must be text, or chat turns"),
    ([{"prompt": [{"role": "assistant", "content": "a"}], "answer": 1}], {}, "that end with the user's"),
    ([{"prompt": "a", "answer": "E", "options": ["x", "y"]}], {"family": "choice"}, "answer 'E' is not one of A, B"),
    ([{"prompt": "a", "answer": "A", "options": "x, y"}], {"family": "choice"}, "options must be a list"),
    ([{"prompt": "a", "numbers": [1.5], "target": 2}], {"family": "countdown"}, "numbers must be a list of integers"),
    ([{"prompt": "a", "numbers": "12", "target": 2}], {"family": "countdown"}, "numbers must be a list of integers"),
    ([{"prompt": "a", "target": 2}], {"family": "countdown"}, "no column 'numbers'"),
    ([{"prompt": "a", "numbers": [float("inf")], "target": 2}], {"family": "countdown"}, "must be a list of integers"),
    ([{"prompt": "a", "answer": "A", "options": {"label": ["A"], "text": []}}], {"family": "choice"}, "same length"),
    ([{"prompt": "a", "prompt_tests": ["assert x", 3]}], {"family": "code"}, "must be a list of assert statements"),
    ([{"prompt": "a", "prompt_tests": "assert x"}], {"family": "code"}, "must be a list of assert statements"),
    ([{"prompt": "a", "answer": 1}, {"prompt": "b", "answer": 1}], {"id_column": "answer"}, "'1' occurs twice"),
    ([], {}, "holds no rows"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "options", "message"), BAD, ids=[case[2][:40] for case in BAD])
def test_bad_rows_are_named_in_one_line(
    own: Make, rows: list[dict[str, Any] | str], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        own(rows, **options).problems("train")
    assert "\n" not in str(caught.value)


def test_bad_options_are_named(own: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown family 'maths'; choose one of boxed_math"):
        own(SUMS, family="maths")
    with pytest.raises(UserError, match=r"test_fraction = 1\.5"):
        own(SUMS, test_fraction=1.5)
    with pytest.raises(UserError, match=r"nowhere\.jsonl does not exist; correct task\.options\.path"):
        get_task(TaskSettings(name="jsonl", options={"path": str(tmp_path / "nowhere.jsonl")})).problems("train")
    with pytest.raises(UserError, match="is a directory"):
        get_task(TaskSettings(name="jsonl", options={"path": str(tmp_path)})).problems("train")


def test_a_hub_data_set_by_id_config_and_split(tmp_path: Path) -> None:
    """`datasets` reads a directory as it reads a Hub repository: the real code path, without a network."""
    pytest.importorskip("datasets")
    for split, count in (("train", 3), ("validation", 2)):
        rows = [{"q": f"{split} {i}?", "a": str(i)} for i in range(count)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"id": str(tmp_path), "prompt_column": "q", "answer_column": "a", "test_split": "validation"}
    task = get_task(TaskSettings(name="hub", options=options))
    assert [problem.gold for problem in task.problems("train")] == ["0", "1", "2"]
    assert [problem.gold for problem in task.problems("test")] == ["0", "1"]
    missing = get_task(TaskSettings(name="hub", options={**options, "answer_column": "gold"}))
    with pytest.raises(UserError, match="no column 'gold'; columns there: q, a"):
        missing.problems("train")


@pytest.mark.usefixtures("offline")
def test_a_hub_data_set_that_cannot_be_had() -> None:
    task = get_task(TaskSettings(name="hub", options={"id": "nobody/nothing"}))
    with pytest.raises(UserError, match="Hub data set nobody/nothing, split train could not be loaded"):
        task.problems("train")


def test_without_a_verifier_only_a_reward_function_grades(own: Make) -> None:
    task = own([{"prompt": "p"}], family="custom", test_fraction=0)
    problem = task.problems("train")[0]
    assert task.messages(problem) == [{"role": "user", "content": "p"}]
    with pytest.raises(UserError, match=r"family custom has no verifier; set task\.reward"):
        task.score(problem, "x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "content", "label", "text", "A"]), inner)
    ),
    max_leaves=6,
)
NAMES = ["prompt", "answer", "options", "numbers", "target", "prompt_tests", "setup"]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FAMILIES), st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_any_row_is_a_problem_or_one_line_that_names_it(case: tuple[str, Any, Any], row: dict[str, Any]) -> None:
    try:
        problem = to_problem(case[0], Columns("prompt", "answer"), "file: row 3", "train-3", row)
    except UserError as error:
        assert str(error).startswith("file: row 3: ")
        assert "\n" not in str(error)
    else:
        assert isinstance(problem, Problem)
        assert problem.question.strip()
