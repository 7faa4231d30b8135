"""Every gold scores 1 through the path of a model's response; the known bad ones do not."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broadreach.verify import GradingPool, Item
from broadreach.verify.boxed import last_box


def rows(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


def wrong_golds(pool: GradingPool, golds: list[str], data: dict[str, Any] | None = None) -> list[str]:
    items = [Item("boxed_math", f"Hence the result is $\\boxed{{{gold}}}$.", gold, data or {}) for gold in golds]
    return [g for g, score in zip(golds, pool.grade_many("boxed_math", items), strict=True) if not score.correct]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("math500/test.jsonl", "answer"),
        ("aime24/test.jsonl", "answer"),
        ("aime25/test.jsonl", "answer"),
        ("amc23/test.jsonl", "answer"),
        ("svamp/SVAMP.json", "Answer"),
    ],
)
def test_every_gold_matches_itself(name: str, field: str, data_folder: Path, pool: GradingPool) -> None:
    assert wrong_golds(pool, [str(row[field]) for row in rows(data_folder / name)]) == []


def test_gsm8k_golds_match_with_and_without_commas(data_folder: Path, pool: GradingPool) -> None:
    golds = [row["answer"].split("####")[1].strip() for row in rows(data_folder / "gsm8k/test.jsonl")]
    assert wrong_golds(pool, golds) == []
    items = [Item("boxed_math", f"\\boxed{{{gold.replace(',', '')}}}", gold) for gold in golds]
    assert all(score.correct for score in pool.grade_many("boxed_math", items))


def test_minerva_and_olympiad_golds_match_themselves(data_folder: Path, pool: GradingPool) -> None:
    minerva = [str(last_box(row["solution"]).payload) for row in rows(data_folder / "minerva_math/test.jsonl")]
    olympiad = [",".join(row["final_answer"]) for row in rows(data_folder / "olympiadbench/test.jsonl")]
    assert wrong_golds(pool, minerva, {"float_rel_tol": 0.01}) == []
    assert wrong_golds(pool, olympiad) == []


def test_a_gold_one_larger_is_wrong(data_folder: Path, pool: GradingPool) -> None:
    golds = [str(row["answer"]) for row in rows(data_folder / "aime24/test.jsonl")]
    items = [Item("boxed_math", f"\\boxed{{{int(gold) + 1}}}", gold) for gold in golds]
    assert not any(score.correct for score in pool.grade_many("boxed_math", items))


def test_commonsense_and_hotpot_golds(data_folder: Path, pool: GradingPool) -> None:
    items = [
        Item(
            "choice",
            f"\\boxed{{{row['answerKey']}}}",
            row["answerKey"],
            {"options": {choice["label"]: choice["text"] for choice in row["question"]["choices"]}},
        )
        for row in rows(data_folder / "commonsense_qa/dev_rand_split.jsonl")
    ]
    assert all(score.correct for score in pool.grade_many("choice", items))
    answers = [row["answer"] for row in rows(data_folder / "hotpotqa/hotpot_dev_v1_simplified.json")]
    items = [Item("answer_tag", f"<answer>{answer}</answer>", answer) for answer in answers]
    assert all(score.correct for score in pool.grade_many("answer_tag", items))


def test_countdown_solutions_of_the_data_set(data_folder: Path, pool: GradingPool) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(data_folder / "countdown/uft_test.parquet").to_pylist()
    items = [
        Item(
            "countdown",
            f"<think>{row['answer']}",
            str(row["target"]),
            {"numbers": row["nums"], "target": row["target"]},
        )
        for row in table
    ]
    assert len(items) == 1_024
    assert all(score.correct for score in pool.grade_many("countdown", items))
    missed = [replace(item, data={**item.data, "target": item.data["target"] + 1}) for item in items]
    assert not any(score.correct for score in pool.grade_many("countdown", missed))


def test_speed_of_2048_short_answers(data_folder: Path) -> None:
    golds = [row["answer"].split("####")[1].strip() for row in rows(data_folder / "gsm8k/test.jsonl")]
    prose = "We add what he earned to what he had and take away what he spent. " * 15
    items = [
        Item("boxed_math", f"{prose}\\boxed{{{golds[i % 1319]}{'' if i % 3 else '1'}}}", golds[i % 1319])
        for i in range(2_048)
    ]
    with GradingPool(workers=2) as own:
        started = time.process_time()
        own.grade_many("boxed_math", items)
        assert time.process_time() - started < 2
        assert own.settled == 0


def mbpp_items(data_folder: Path) -> list[Item]:
    full = [
        Item(
            "code",
            f"```python\n{row['code']}\n```",
            "",
            {"tests": row["test_list"] + row["challenge_test_list"], "setup": row["test_setup_code"]},
        )
        for row in rows(data_folder / "mbpp/mbpp.jsonl")
    ]
    sanitized = [
        Item("code", f"```python\n{row['code']}\n```", "", {"tests": row["test_list"], "imports": row["test_imports"]})
        for row in rows(data_folder / "mbpp/sanitized-mbpp.json")
    ]
    assert (len(full), len(sanitized)) == (974, 427)
    return full + sanitized


@pytest.mark.needs_bubblewrap
def test_some_mbpp_golds_pass(data_folder: Path, pool: GradingPool) -> None:
    chosen = mbpp_items(data_folder)[::60]
    assert all(score.correct for score in pool.grade_many("code", chosen))


@pytest.mark.slow
@pytest.mark.needs_bubblewrap
def test_all_mbpp_golds_of_both_configurations_pass(data_folder: Path, pool: GradingPool) -> None:
    items = mbpp_items(data_folder)
    scores = pool.grade_many("code", items)
    assert [item.response for item, score in zip(items, scores, strict=True) if not score.correct] == []
