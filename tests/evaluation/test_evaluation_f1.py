"""HotpotQA's F1 reaches the store and metrics.json; other families' rows and metrics have no such field."""

from __future__ import annotations

from pathlib import Path

import pytest

from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest, read_rows
from broadreach.evaluation.summary import summarise
from broadreach.evaluation.table import load
from broadreach.types import Problem, Response
from broadreach.verify import grade

PROBLEMS = [Problem("a", "Which mill?", "Old Mill Street"), Problem("b", "Is it?", "yes")]
ANSWERS = {
    "a": ["<answer>the old mill</answer>", "Old Mill Street"],
    "b": ["<answer>Yes.</answer>", "<answer>yes it is</answer>"],
}


def stored(path: Path, family: str) -> Path:
    header = StoreHeader("toy", "test", "d", "i", 0.6, 16, 2, 1, len(PROBLEMS), problem_digest(PROBLEMS))
    for _ in range(2):  # a finished store opens again and stays as it is
        with SampleStore(path, header, [problem.id for problem in PROBLEMS]) as store:
            for problem in PROBLEMS[store.done :]:
                texts = ANSWERS[problem.id]
                scores = [grade(family, text, problem.gold) for text in texts]
                store.append(problem.id, [Response(text, (1,), "stop", 3) for text in texts], scores)
    return path


def test_f1_is_stored_and_summarised(tmp_path: Path) -> None:
    path = stored(tmp_path / "samples.jsonl", "answer_tag")
    assert [row.f1 for row in read_rows(path)] == [pytest.approx(0.8), 0.0, 1.0, 0.0]
    metrics = summarise(load(path))
    assert metrics["mean_f1"]["value"] == pytest.approx(0.45)
    assert metrics["pass_at_1"]["value"] == 0.25
    assert metrics["mean_f1"]["low"] <= 0.45 <= metrics["mean_f1"]["high"]


def test_families_without_f1_have_neither_column_nor_metric(tmp_path: Path) -> None:
    path = stored(tmp_path / "samples.jsonl", "exact")
    assert '"f1"' not in path.read_text()
    assert all(row.f1 is None for row in read_rows(path))
    assert "mean_f1" not in summarise(load(path))
