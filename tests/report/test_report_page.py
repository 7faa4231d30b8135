"""The report of a made-up run: self-contained, honest about what is missing, worded by its intervals."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from report_fixture_run import ALPHA, BASE_NORM, PARAMETERS, POPULATION, make_run

from broadreach.evaluation.summary import compare_stores
from broadreach.report.figures import all_figures
from broadreach.report.html import render, write_report
from broadreach.report.problems import problem_rows
from broadreach.report.run_data import read_run
from broadreach.report.svg import PLACEHOLDERS, to_svg
from broadreach.report.words import claim, points, points_interval, seconds, verdict
from broadreach.types import UserError

SMALL = {"updates": 12, "planned": 12, "problems": 40, "samples": 8}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("whole"), **SMALL)


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return write_report(run, run / "report").read_text(encoding="utf-8")


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[..., Path]:
    return lambda **changes: make_run(tmp_path, **{**SMALL, **changes})


def text_of(run: Path) -> str:
    """The page without its figures, which take most of the time."""
    return render(read_run(run), [])


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"<script|<link rel=\"stylesheet|@import|url\((?!#)", page)
    targets = [link[1:] for link in links if link.startswith("#")]
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and set(targets) <= set(ids)


def test_the_verdict_words_are_those_of_the_intervals(run: Path, page: str) -> None:
    stores = [run / "eval" / name / "samples.jsonl" for name in ("base", "final")]
    difference = compare_stores(*stores)
    for entry in (difference["pass_at_k"][0], difference["pass_at_k"][-1]):
        assert f"{points(entry['value'])} points {points_interval(entry)}" in page
    assert f"Pass@1 over the base is {claim(difference['pass_at_k'][0])} here" in page
    assert f"on {difference['solved']['only_b']} only after" in page
    assert verdict({"low": 0.01, "high": 0.2}).word == "higher" and claim({"low": 0.01, "high": 0.2}) == "confirmed"
    assert verdict({"low": -0.2, "high": -0.01}).word == "lower" and claim({"low": -0.2, "high": -0.01}) == "refuted"
    for touching in ({"low": 0.0, "high": 0.1}, {"low": -0.1, "high": 0.0}, {"low": -1.0, "high": 1.0}):
        assert verdict(touching).word == "no difference shown" and claim(touching) == "undecided"


def test_every_figure_is_there_as_svg_pdf_and_csv(run: Path, page: str) -> None:
    figures = all_figures(read_run(run))
    names = ["pass-profile", "pass-difference", "problems", "reward", "drift", "phases"]
    assert [figure.name for figure in figures] == names
    for figure in figures:
        root = ElementTree.fromstring(to_svg(figure))
        assert root.find("title").text == figure.title  # type: ignore[union-attr]
        svg = to_svg(figure)
        assert svg in page and "DejaVu" not in svg
        assert not any(colour in svg for colour in PLACEHOLDERS.values()) and "var(--es)" in svg
        assert (run / "report/figures" / f"{figure.name}.pdf").read_bytes().startswith(b"%PDF")
        rows = list(csv.reader((run / "report/figures" / f"{figure.name}.csv").open()))
        assert rows[0] == list(figure.columns) and len(rows) == 1 + len(next(iter(figure.columns.values())))


def test_tables_hold_every_problem_and_every_k(run: Path, page: str) -> None:
    problems = list(csv.DictReader((run / "report/tables/nano-chain-problems.csv").open()))
    assert len(problems) == 40 and all(0 <= int(row["es_correct"]) <= 8 == int(row["samples"]) for row in problems)
    measures = list(csv.DictReader((run / "report/tables/nano-choice-measures.csv").open()))
    assert [row["k"] for row in measures if row["metric"] == "pass_at_k"] == [str(k) for k in range(1, 9)]
    assert "nano-choice, not trained on" in page and "only 40 problems" in page


def test_the_same_files_give_the_same_page(run: Path, page: str, tmp_path: Path) -> None:
    assert write_report(run, tmp_path / "again").read_text(encoding="utf-8") == page


def test_random_walk_of_z_scored_updates_is_alpha_sqrt_t_over_n(run: Path) -> None:
    walk = read_run(run).random_walk
    assert walk is not None and len(walk) == 12
    for step, predicted in enumerate(walk, start=1):
        each = ALPHA * math.sqrt(step / POPULATION)
        assert predicted == pytest.approx(each * math.sqrt(PARAMETERS) / BASE_NORM, rel=1e-6)


def test_an_unfinished_run_is_reported_and_marked(fresh: Callable[..., Path]) -> None:
    page = text_of(fresh(updates=5, planned=60))
    assert "Unfinished run:" in page and "5 of 60 updates so far" in page
    assert "Pass@1 went from" in page


@pytest.mark.parametrize("updates", [0, 1, 2])
def test_a_run_that_was_not_evaluated_says_what_to_do(fresh: Callable[..., Path], updates: int) -> None:
    run = fresh(updates=updates, evaluated=False)
    page = text_of(run)
    assert "has not been evaluated" in page and "broadreach eval" in page and "Pass@1" not in page
    names = [figure.name for figure in all_figures(read_run(run))]
    assert names == [[], ["phases"], ["reward", "drift", "phases"]][updates]


def test_one_response_a_problem_has_no_curve_over_k(fresh: Callable[..., Path]) -> None:
    run = fresh(samples=1)
    assert "Pass@1 went from" in text_of(run)
    assert not {"pass-profile", "pass-difference"} & {figure.name for figure in all_figures(read_run(run))}


def test_responses_are_text_never_markup(run: Path) -> None:
    store = run / "eval/final/samples.jsonl"
    page = text_of(run)
    assert "I think <b>" in store.read_text() and "I think <b>" not in page and "I think &lt;b&gt;" in page


def test_a_private_task_shows_no_question_and_no_response(fresh: Callable[..., Path]) -> None:
    run = fresh(private=True)
    page = text_of(run)
    assert "Start with" not in page and "So the answer is" not in page and "nano-chain-0001" in page
    assert all(row.examples == () for row in problem_rows(read_run(run).own))  # type: ignore[arg-type]


def test_problems_come_from_largest_gain_to_largest_loss(run: Path) -> None:
    pair = read_run(run).own
    assert pair is not None
    rows = problem_rows(pair, shown=12)
    changes = [row.after - row.before for row in rows]
    assert len({row.id for row in rows}) == 12 and changes == sorted(changes, reverse=True)
    every = pair.after.correct.sum(axis=1) - pair.before.correct.sum(axis=1)
    assert changes[0] == every.max() and changes[-1] == every.min()
    assert len(problem_rows(pair, shown=1000)) == 40
    assert {example.who for row in rows for example in row.examples} == {"base", "ES"}


def test_broken_files_are_left_out_and_named(fresh: Callable[..., Path]) -> None:
    run = fresh()
    lines = (run / "metrics.jsonl").read_text().splitlines()
    (run / "metrics.jsonl").write_text("\n".join([*lines[:3], "{oops", *lines[4:], '{"step": 13, "rew']))
    ledger = (run / "ledger.jsonl").read_text()
    (run / "ledger.jsonl").write_text(ledger.replace('"step":5', '"step":6', 1))
    torn = run / "eval/nano-choice/final/samples.jsonl"
    torn.write_bytes(torn.read_bytes()[:3000])
    page = text_of(run)
    assert "metrics.jsonl, line 4 could not be read" in page and "line 13" not in page
    assert "no random-walk prediction" in page
    assert "evaluation left out" in page and "Pass@1 went from" in page


def test_stores_of_other_settings_are_not_compared(fresh: Callable[..., Path]) -> None:
    run = fresh()
    store = run / "eval/final/samples.jsonl"
    first, rest = store.read_text().split("\n", 1)
    store.write_text(json.dumps({**json.loads(first), "temperature": 1.0}) + "\n" + rest)
    page = text_of(run)
    assert "temperature: 0.6, 1.0" in page and "has not been evaluated" in page


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run folder"):
        write_report(tmp_path, tmp_path / "report")
    (tmp_path / "config.toml").write_text("seed = ")
    with pytest.raises(UserError, match="not valid TOML"):
        write_report(tmp_path, tmp_path / "report")


def test_unsandboxed_code_is_said(fresh: Callable[..., Path]) -> None:
    run = fresh(evaluated=False)
    assert "without a sandbox" not in text_of(run)
    config = run / "config.toml"
    config.write_text(config.read_text().replace("allow_unsandboxed = false", "allow_unsandboxed = true"))
    assert "without a sandbox" in text_of(run)


def test_numbers_read_well() -> None:
    assert points(-0.0351) == "−3.5" and points(0.0) == "0.0" == points(-0.00001)
    assert [seconds(s) for s in (4.21, 221, 7384)] == ["4.2 s", "3 min 41 s", "2 h 3 min"]
