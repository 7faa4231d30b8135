"""The four families: disjoint, deterministic, gradable."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from broadreach.tasks.nano import NANO_TASKS, splits
from broadreach.types import Problem, UserError

NAMES = sorted(NANO_TASKS)
DIGESTS = {
    "nano-chain": "f0fe427dd1209c88",
    "nano-choice": "3e7161ed2b2c3c2e",
    "nano-context": "5d4b0f54590bb6d6",
    "nano-countdown": "19587da1ebfc1ab9",
}


def task_of(name: str) -> Any:
    return NANO_TASKS[name]()


def digest(problems: list[Problem]) -> str:
    text = "\n".join(f"{p.id}|{p.question}|{p.gold}" for p in problems)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def near_misses(name: str, problem: Problem) -> list[str]:
    gold, data = problem.gold, problem.data
    if name == "nano-chain":
        return [f"\\boxed{{{int(gold) + 1}}}", f"\\boxed{{{gold}0}}", gold, f"It is {gold}.", f"\\boxed{{{gold}"]
    if name == "nano-choice":
        other = next(letter for letter in "ABCD" if letter != gold)
        return [f"\\boxed{{{other}}}", gold, f"It is {gold}.", "\\boxed{}"]
    if name == "nano-context":
        other = next(word for word in data["pool"] if word != gold)
        return [f"<answer> {other}</answer>", gold, f"<answer> {gold}", f"<answer> {gold} {other}</answer>"]
    spare = f"{gold}+{data['numbers'][0]}"
    return [f"<answer>{spare}</answer>", f"<answer>{data['target']}</answer>", f"It is {gold}.", f"<answer>{gold}"]


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_no_problem_and_repeat_none(name: str) -> None:
    task = task_of(name)
    texts = {split: [p.question for p in task.problems(split)] for split in splits.SIZES}
    for split, size in splits.SIZES.items():
        assert len(texts[split]) == len(set(texts[split])) == size
    assert not set(texts["train"]) & set(texts["test"])
    assert not set(texts["train"]) & set(texts["heldout"])
    assert not set(texts["test"]) & set(texts["heldout"])


@pytest.mark.parametrize("name", NAMES)
def test_problems_are_the_same_on_every_machine(name: str) -> None:
    assert digest(task_of(name).problems("test")) == DIGESTS[name]


def test_countdown_splits_share_no_permutation() -> None:
    task = task_of("nano-countdown")
    keys = {s: {(p.data["target"], *sorted(p.data["numbers"])) for p in task.problems(s)} for s in splits.SIZES}
    assert not keys["train"] & keys["test"]
    assert not keys["train"] & keys["heldout"]


@pytest.mark.parametrize("name", NAMES)
def test_any_prefix_is_graded_alike(name: str) -> None:
    levels = [p.data["level"] for p in task_of(name).problems("test")]
    for level in set(levels):
        assert levels[:200].count(level) / 200 == pytest.approx(levels.count(level) / len(levels))


@pytest.mark.parametrize("name", NAMES)
def test_worked_answers_score_one_and_near_misses_do_not(name: str) -> None:
    task = task_of(name)
    for problem, response in task.worked_examples():
        score = task.score(problem, response, "stop")
        assert (score.reward, score.correct, score.error) == (1.0, True, None)
        for miss in near_misses(name, problem):
            score = task.score(problem, miss)
            assert not score.correct and score.reward < 1 and score.error is None, miss


@pytest.mark.parametrize("name", NAMES)
def test_worked_examples_are_not_in_training_or_test(name: str) -> None:
    task = task_of(name)
    shown = {problem.question for problem, _ in task.worked_examples()}
    assert len(shown) == 8
    assert not shown & {p.question for split in ("train", "test") for p in task.problems(split)}


@pytest.mark.parametrize("name", NAMES)
def test_gold_of_every_test_problem_is_right(name: str) -> None:
    task = task_of(name)
    wrapped = "\\boxed{{{}}}" if name in ("nano-chain", "nano-choice") else "<answer>{}</answer>"
    assert all(task.score(p, wrapped.format(p.gold)).correct for p in task.problems("test"))


def test_chain_gold_is_what_python_computes() -> None:
    for problem in task_of("nano-chain").problems("test"):
        assert str(eval(problem.question[len("Compute ") : -1])) == problem.gold


@pytest.mark.parametrize("name", NAMES)
def test_question_is_the_only_turn(name: str) -> None:
    problem = task_of(name).problems("test")[0]
    assert task_of(name).messages(problem) == [{"role": "user", "content": problem.question}]


def test_unknown_split_names_those_there_are() -> None:
    with pytest.raises(UserError, match="train, test, heldout"):
        task_of("nano-chain").problems("validation")
