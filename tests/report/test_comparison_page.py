"""The comparison of made-up runs: self-contained, decided by intervals, beside the paper's numbers; its refusals."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from comparison_fixture_runs import HOSTILE, make_run, make_runs
from typer.testing import CliRunner

from broadreach.cli import app
from broadreach.evaluation.metrics import pass_at_k
from broadreach.evaluation.table import load
from broadreach.report.claims import falls, rises, stays
from broadreach.report.claims_scores import _below
from broadreach.report.comparison_data import read_comparison
from broadreach.report.comparison_page import Written, write_comparison
from broadreach.report.comparison_stats import Statistics, paired_seeds
from broadreach.report.comparison_tables import score_tables
from broadreach.report.explorer import Limits, build_explorer, by_kind, choose_limits
from broadreach.report.paper_numbers import published
from broadreach.types import UserError

SMALL = {"problems": 30, "samples": 8, "updates": 6}
FAST = {"draws": 400}
PLAIN = {"tasks": ("nano-chain",), "extras": False}
"""One task without baselines and curves: fewer figures to draw."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_runs(tmp_path_factory.mktemp("runs"), **SMALL)


@pytest.fixture(scope="module")
def written(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_comparison(runs, tmp_path_factory.mktemp("page"), **FAST)


@pytest.fixture(scope="module")
def text(written: Written) -> str:
    return written.page.read_text(encoding="utf-8")


@pytest.fixture
def one(tmp_path: Path) -> Callable[..., Path]:
    return lambda method="es", seed=0, **changes: make_run(tmp_path, method, seed, **{**SMALL, **changes})


def unpack(block: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(block)))


def test_the_page_needs_nothing_but_itself(text: str) -> None:
    links = re.findall(r'(?:href|src)="([^"]*)"', text)
    assert links and all(link.startswith(("#", "data:")) for link in links)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert "default-src 'none'" in text and "script-src 'sha256-" in text


def test_hostile_texts_lie_packed_and_come_out_whole(runs: list[Path], text: str) -> None:
    assert "window.pwned" not in text and text.count("<script") == text.count("</script>")
    found = build_explorer(read_comparison(runs), {f"m{i}": "es" for i in range(3)})
    first = unpack(found.blocks["x-text-0-0"])[0]
    assert [answers[0][3] for answers in first["texts"]] == [HOSTILE] * 7


def test_every_number_of_the_explorer_is_that_of_the_stores(runs: list[Path]) -> None:
    data = read_comparison(runs)
    found = build_explorer(data, {f"m{i}": "es" for i in range(3)})
    counts = unpack(found.blocks["x-index-1"])["counts"]
    assert [(m["label"], m["seed"]) for m in found.head["models"]][:4] == [
        ("Base", None), ("ES", 0), ("ES", 1), ("GRPO", 0)
    ]  # fmt: skip
    for place, run in ((1, runs[0]), (2, runs[1]), (3, runs[2])):
        assert counts[place] == load(run / "eval/nano-choice/final/samples.jsonl").correct.sum(axis=1).tolist()


def test_a_gain_is_the_mean_paired_difference_over_seeds_and_problems(runs: list[Path]) -> None:
    data = read_comparison(runs)
    gain = Statistics(data, 200).gain([data.tasks[0]], "m0")
    counts = [
        load(run / f"eval/{which}/samples.jsonl").correct.sum(axis=1) for run in runs[:2] for which in ("base", "final")
    ]
    for k in (1, 8):
        chances = [np.mean([pass_at_k(8, int(c), k) for c in column]) for column in counts]
        assert gain.at("pass", k)["value"] == pytest.approx(np.mean([chances[1] - chances[0], chances[3] - chances[2]]))
    assert gain.seeds == 2 and "2 training seeds" in gain.note


def test_verdicts_follow_from_the_intervals_they_show(written: Written, runs: list[Path]) -> None:
    data = read_comparison(runs)
    stats = Statistics(data, FAST["draws"])
    claims = {claim.number: claim for claim in written.claims}
    assert claims["1a"].verdict == rises(stats.gain(data.targets, "m0").at("pass", 1))
    assert claims["1e"].verdict == falls(stats.gain(data.targets, "m1").at("pass", 8))
    assert claims["6b"].verdict == falls(stats.gain(data.held_out, "m1").at("pass", 8))
    assert claims["2a"].verdict == "confirmed" and claims["2b"].verdict == "confirmed"
    assert claims["4a"].verdict == "confirmed" and claims["4c"].verdict == claims["5a"].verdict == "not measured here"
    assert claims["3b"].verdict == "not measured here", "no run of GRPO then ES was given"


@pytest.mark.parametrize(
    ("low", "high", "rise", "fall", "stay"),
    [
        (0.02, 0.3, "confirmed", "refuted", "undecided"),
        (-0.3, -0.2, "refuted", "confirmed", "refuted"),
        (-0.05, 0.05, "undecided", "undecided", "confirmed"),
        (0.0, 0.05, "undecided", "undecided", "confirmed"),
        (0.2, 0.3, "confirmed", "refuted", "refuted"),
    ],
)
def test_the_three_rules(low: float, high: float, rise: str, fall: str, stay: str) -> None:
    entry = {"value": (low + high) / 2, "low": low, "high": high}
    assert (rises(entry), falls(entry), stays(entry, 0.1)) == (rise, fall, stay)


def test_one_seed_is_said_to_cover_problems_only(one: Callable[..., Path], tmp_path: Path) -> None:
    made = write_comparison([one(**PLAIN), one("grpo", **PLAIN)], tmp_path / "out", **FAST)
    page = made.page.read_text()
    assert "one seed: the intervals cover the choice of 30 problems" in page
    assert "only 30 problems" in page
    assert {claim.number: claim.verdict for claim in made.claims}["4a"] == "undecided", "no interval over one seed"


def test_figures_and_tables_lie_beside_the_page(written: Written) -> None:
    folder = written.page.parent
    names = {path.stem for path in (folder / "figures").glob("*.pdf")}
    assert {"profile-nano-chain", "pareto-all-tasks", "reward", "entropy-nano-chain", "drift", "budgets"} <= names
    assert names == {path.stem for path in (folder / "figures").glob("*.csv")}
    with open(folder / "tables/pass-at-k.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"] for row in rows} == {"Base", "ES", "GRPO", "ES→GRPO"}
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_the_average_weighs_tasks_equally(runs: list[Path]) -> None:
    data = read_comparison(runs)
    stats = Statistics(data, 100)
    each = [stats.level([task], "m0").at("pass", 1)["value"] for task in data.tasks]
    assert stats.level(data.tasks, "m0").at("pass", 1)["value"] == pytest.approx(np.mean(each))


def test_the_papers_numbers_stand_beside_ours_only_for_its_model_and_task(
    one: Callable[..., Path], tmp_path: Path
) -> None:
    qwen = {"model": {"path": "Qwen/Qwen2.5-1.5B-Instruct"}}
    tasks = ("gsm8k", "commonsense_qa")
    run = one(name="paper", tasks=tasks, settings=qwen, samples=16, extras=False)
    paper = published(read_comparison([run]))
    assert paper is not None and paper.setting == "easy"
    assert paper.score("pass", "es", "gsm8k", 1) == 73.2 and paper.score("maj", "base", "commonsense_qa", 16) == 67.8
    assert paper.held_out_change("grpo", "pass", 32) == -0.1
    assert (
        "evaluation samples 16 (paper 32)" in paper.deviations
        and "train.updates 6 (paper: whole epochs)" in paper.deviations
    )
    page = write_comparison([run], tmp_path / "out", **FAST).page.read_text()
    assert "paper 73.2%" in page and "paper 60.6%" in page
    assert published(read_comparison([one(name="other", tasks=tasks, extras=False)])) is None


def test_greedy_responses_get_a_row_where_every_model_has_them(one: Callable[..., Path]) -> None:
    run = one(**PLAIN)
    stats = Statistics(read_comparison([run]), 100)
    assert [name for name, _ in score_tables(stats.data, stats, None)[0].groups[0].rows] == ["Pass@1", "Pass@8"]
    for which in ("base", "final"):
        _greedy(run / "eval" / which)
    data = read_comparison([run])
    stats = Statistics(data, 100)
    name, cells = score_tables(data, stats, None)[0].groups[0].rows[-1]
    table = load(run / "eval/final/greedy/samples.jsonl")
    assert name == "Greedy" and cells[1].numbers["value"] == pytest.approx(table.correct.mean())


def test_settings_tell_two_groups_of_one_method_apart(one: Callable[..., Path]) -> None:
    data = read_comparison([one(), one(seed=1), one(name="loud", settings={"es": {"sigma": 0.02}})])
    assert [(m.label, m.seeds) for m in data.methods] == [("ES (sigma 0.0015)", (0, 1)), ("ES (sigma 0.02)", (0,))]


def test_methods_are_paired_by_the_seeds_they_share(one: Callable[..., Path]) -> None:
    data = read_comparison([one(), one(seed=1), one(seed=2), one("grpo", 2), one("grpo", 1)])
    assert paired_seeds(data.methods[0], data.methods[1]) == ([1, 2], [0, 1])
    assert any("numbers of seeds differ" in note for note in data.notes)


def test_an_unfinished_run_is_compared_and_marked(one: Callable[..., Path], tmp_path: Path) -> None:
    made = write_comparison([one(**PLAIN), one("grpo", done=False, **PLAIN)], tmp_path / "out", **FAST)
    page = made.page.read_text()
    assert "<strong>Unfinished:</strong>" in page and "grpo-seed0 (6 of 6 updates)" in page


def test_private_tasks_show_counts_and_no_text(one: Callable[..., Path]) -> None:
    found = build_explorer(read_comparison([one(private=True)]), {"m0": "es"})
    assert [name for name in found.blocks if "text" in name] == []
    assert set(unpack(found.blocks["x-index-0"])["asked"]) == {""} and "forbid" in found.note


def test_texts_keep_under_the_cap_by_kind(runs: list[Path]) -> None:
    data = read_comparison(runs)
    assert choose_limits(data, 10**9) == Limits(8, 6000)
    small = choose_limits(data, 150_000)
    assert 3 <= small.responses < 8
    rows = next(row for row in data.tasks[0].base.rows() if 0 < sum(r.correct for r in row) < 8)
    kept = by_kind(rows)
    assert kept[0].correct and not kept[1].correct and sorted(r.sample for r in kept) == list(range(8))
    found = build_explorer(data, {f"m{i}": "es" for i in range(3)}, 150_000)
    texts = [t for name, b in found.blocks.items() if "text" in name for p in unpack(b) for m in p["texts"] for t in m]
    assert sum(len(answer[3]) for answer in texts) <= 150_000
    assert f"the first {small.responses} of 8" in found.note


REFUSED: dict[str, tuple[Callable[[Callable[..., Path]], list[Path]], str]] = {
    "no run": (lambda one: [one().parent], "is not a run folder"),
    "no evaluation": (lambda one: [_without(one(), "eval")], "has not been evaluated: run `broadreach eval"),
    "no store": (lambda one: [_without(one(), "eval/final/samples.jsonl")], "final/samples.jsonl is missing: run"),
    "temperature": (lambda one: [one(), one("grpo", header={"temperature": 1.0})], "temperature: 0.6, 1.0"),
    "problem set": (lambda one: [one(), one("grpo", problems=31)], "problems: 30, 31"),
    "base": (
        lambda one: [one(), one("grpo", header={"model_digest": "other"})],
        "model_digest: 'weights-base-0', 'other'",
    ),
    "tasks": (lambda one: [one(), one("grpo", tasks=("nano-chain",))], "was not evaluated on nano-choice"),
    "twice": (lambda one: [one(), one(name="again")], "the same method (es) with the same settings and seed 0"),
    "unfinished store": (lambda one: [_cut(one())], "finish the evaluation first"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_runs_that_cannot_be_compared_are_refused_in_one_line(name: str, one: Callable[..., Path]) -> None:
    make, said = REFUSED[name]
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        read_comparison(make(one))
    assert "\n" not in str(caught.value)


def test_the_command_prints_verdicts_and_the_path(one: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = CliRunner().invoke(app, ["compare", str(one(problems=10, **PLAIN)), "--out", str(out), "--k", "1,4"])
    assert result.exit_code == 0, result.output
    assert "1a " in result.output and f"report: {out}/index.html" in result.output
    assert "Pass@4" in (out / "tables/pass-at-k.csv").read_text()
    refused = CliRunner().invoke(app, ["compare", str(tmp_path), "--k", "0"])
    assert isinstance(refused.exception, UserError) and "--k 0" in str(refused.exception)


def _greedy(folder: Path) -> None:
    """The first response of each problem as its greedy one."""
    header, *rows = folder.joinpath("samples.jsonl").read_text().splitlines(keepends=True)
    (folder / "greedy").mkdir()
    settings = json.dumps({**json.loads(header), "samples": 1, "temperature": 0.0})
    (folder / "greedy/samples.jsonl").write_text(settings + "\n" + "".join(rows[::8]))


def _without(run: Path, name: str) -> Path:
    place = run / name
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    return run


def _cut(run: Path) -> Path:
    store = run / "eval/final/samples.jsonl"
    store.write_text("".join(store.read_text().splitlines(keepends=True)[:-8]))
    return run


def test_more_k_than_responses_is_refused(one: Callable[..., Path]) -> None:
    run = one(problems=10, **PLAIN)
    samples = read_comparison([run]).samples
    assert read_comparison([run]).ks[-1] == samples  # without --k, what is stored
    with pytest.raises(UserError, match=f"--k 99: only {samples} responses a problem are stored"):
        read_comparison([run], (1, 99))


def cells(es, grpo, draws=400):
    """Claim 1f on made-up Pass@K, [problems, K = 1 and 2] minus the base of each of four tasks."""
    method = {name: SimpleNamespace(key=name) for name in ("es", "grpo")}
    tasks = [
        SimpleNamespace(passes={"base": np.zeros_like(a), "es": a[None], "grpo": b[None]})
        for a, b in zip(es, grpo, strict=True)
    ]
    stats = Statistics(SimpleNamespace(), draws)
    data = SimpleNamespace(first=method.get, ks=(1, 2), tasks=tasks)
    return _below(data, stats)


def test_cells_below_the_base_are_compared_by_the_interval_of_their_difference():
    generator = np.random.default_rng(0)
    noise = [generator.normal(0, 0.3, (60, 2)) for _ in range(8)]
    assert cells(noise[:4], noise[4:]).verdict == "undecided"
    fallen = [one - 1 for one in noise[:4]]
    risen = [one + 1 for one in noise[4:]]
    assert cells(risen, fallen).verdict == "confirmed" and cells(fallen, risen).verdict == "refuted"
    assert "GRPO below in 4 and ES in 0 of 4 cells" in cells(risen, fallen).evidence
