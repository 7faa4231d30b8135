"""Methods compared where they had spent alike: which updates, which numbers, and what is said where there are none."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from comparison_fixture_runs import make_run

from broadreach.evaluation.metrics import pass_at_k
from broadreach.evaluation.table import load
from broadreach.report.comparison_data import read_comparison
from broadreach.report.comparison_matched import MatchedBudget, budget_heading, budget_lines, matched_budgets
from broadreach.report.comparison_page import write_comparison
from broadreach.report.comparison_stats import Statistics

SMALL = {"tasks": ("nano-chain",), "problems": 20, "samples": 8}


@pytest.fixture
def one(tmp_path: Path) -> Callable[..., Path]:
    return lambda method="es", seed=0, **changes: make_run(tmp_path / "runs", method, seed, **{**SMALL, **changes})


def matched(*runs: Path) -> tuple[dict[str, MatchedBudget], list[str]]:
    data = read_comparison(runs)
    rows, notes = matched_budgets(data, Statistics(data, 200))
    return {row.unit: row for row in rows}, notes


def passes(run: Path, step: int, k: int) -> float:
    counts = load(run / f"eval/curve/nano-chain/step-{step}/samples.jsonl").correct.sum(axis=1)
    return float(np.mean([pass_at_k(8, int(count), k) for count in counts]))


def test_each_unit_takes_the_last_evaluated_update_within_the_smallest_budget(one: Callable[..., Path]) -> None:
    # evaluated at 0, 3, 6 and 0, 6, 12; an ES update scores 1,024 responses in 4 s, a GRPO update 256 in 9 s
    found, notes = matched(one("es", updates=6), one("grpo", updates=12))
    assert list(found) == ["updates", "responses", "tokens", "seconds"]
    at = {unit: [method.updates for method in row.methods] for unit, row in found.items()}
    assert at == {
        "updates": [(6,), (6,)],
        "responses": [(3,), (12,)],
        "tokens": [(3,), (12,)],
        "seconds": [(6,), (0,)],
    }
    assert found["responses"].amount == 12 * 256 == found["responses"].methods[0].spent
    assert budget_heading(found["responses"]) == "nano-chain, 3,072 responses"
    assert budget_heading(found["seconds"]) == "nano-chain, 24.0 s"
    assert budget_lines(found["seconds"])[1].update == "0 (the base)"
    assert len(notes) == 1 and "one seed" in notes[0]


def test_the_numbers_are_those_of_the_stores_and_the_difference_is_es_minus_grpo(one: Callable[..., Path]) -> None:
    es = [one("es", seed, updates=6) for seed in (0, 1)]
    grpo = [one("grpo", seed, updates=12) for seed in (0, 1)]
    row = matched(*es, *grpo)[0]["responses"]
    assert row.ks == (1, 8) and row.versus == "ES − GRPO" and "2 training seeds" in row.note
    for k in row.ks:
        means = [np.mean([passes(run, step, k) for run in runs]) for runs, step in ((es, 3), (grpo, 12))]
        for method, mean in zip(row.methods, means, strict=True):
            assert method.levels[k]["value"] == pytest.approx(mean)
            assert method.levels[k]["low"] <= mean <= method.levels[k]["high"]
        assert row.differences[k]["value"] == pytest.approx(means[0] - means[1])
    cell = budget_lines(row)[-1].cells[0]
    assert cell[0] == f"{100 * row.differences[1]['value']:+.1f}".replace("-", "−") and cell[2] is not None


def test_the_thriftiest_run_of_all_seeds_sets_the_budget(one: Callable[..., Path]) -> None:
    runs = [one("es", 0, updates=6), one("es", 1, updates=6), one("grpo", 0, updates=12), one("grpo", 1, updates=12)]
    lines = [json.loads(line) for line in (runs[3] / "metrics.jsonl").read_text().splitlines()]
    (runs[3] / "metrics.jsonl").write_text("".join(json.dumps({**line, "responses": 128}) + "\n" for line in lines))
    row = matched(*runs)[0]["responses"]
    assert row.amount == 12 * 128
    assert [method.updates for method in row.methods] == [(0, 0), (6, 12)]
    assert row.methods[1].spent == 1536 and budget_lines(row)[1].update == "6 to 12"


def test_without_an_evaluation_within_the_budget_a_method_shows_none(one: Callable[..., Path]) -> None:
    runs = [one("es", updates=6), one("grpo", updates=12)]
    curve = runs[1] / "curve.jsonl"
    curve.write_text("".join(curve.read_text().splitlines(keepends=True)[-1:]))
    row = matched(*runs)[0]["seconds"]
    assert row.methods[1].updates == () and row.differences == {}
    assert [len(line.cells) for line in budget_lines(row)] == [2, 0]


def test_runs_without_evaluations_during_training_are_told_how_to_get_them(one: Callable[..., Path]) -> None:
    plain = [one("es", extras=False), one("grpo", extras=False)]
    assert matched(*plain) == ({}, ["No run was evaluated during training: train with --set eval.curve_every=N."])
    found, notes = matched(plain[0], one("grpo", name="curved"))
    assert found == {}
    assert notes == [
        "ES: not every run was evaluated on nano-chain during training (train with --set eval.curve_every=N)."
    ]


def test_a_lost_store_is_named(one: Callable[..., Path]) -> None:
    runs = [one("es", updates=6), one("grpo", updates=12)]
    shutil.rmtree(runs[0] / "eval/curve/nano-chain/step-6")
    found, notes = matched(*runs)
    assert found == {} and "step-6/samples.jsonl is missing" in notes[0]


def test_the_page_and_the_file_show_the_same_numbers(one: Callable[..., Path], tmp_path: Path) -> None:
    runs = [one("es", updates=6), one("grpo", updates=12)]
    page = write_comparison(runs, tmp_path / "out", draws=200).page
    with open(tmp_path / "out/tables/matched-budgets.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["matched_by"] == "responses" and row["k"] == "1"]
    assert [(row["method"], row["updates"]) for row in rows] == [("ES", "3"), ("GRPO", "12"), ("ES − GRPO", "")]
    text = re.sub(r"\s+", " ", page.read_text(encoding="utf-8"))
    section = text[text.index("nano-chain, 3,072 responses") :]
    values = re.findall(r">(?:<[^>]*>)?(\d+\.\d)%<small>", section)
    assert values[0] == f"{100 * float(rows[0]['value']):.1f}"
