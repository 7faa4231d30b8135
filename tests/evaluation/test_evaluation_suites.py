"""Suites, greedy responses, entropy, baselines and reuse, through the functions behind `broadreach eval`."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broadreach.commands.evaluation import BaselineSettings, evaluate, evaluate_suite
from broadreach.commands.evaluation_text import result_lines, suite_lines
from broadreach.config import load_config
from broadreach.evaluation import evaluate as machinery
from broadreach.evaluation.entropy_file import entropy_difference, read_entropy, write_entropy
from broadreach.evaluation.store import StoreHeader, read_header
from broadreach.evaluation.summary import compare_stores
from broadreach.evaluation.table import load
from broadreach.runs.folder import RunFolder
from broadreach.tasks import suites
from broadreach.tasks.registry import built_in_names
from broadreach.tasks.suites import SUITES, Suite, SuiteTask, get_suite
from broadreach.training.es import train
from broadreach.training.reporter import Silent
from broadreach.types import UserError

CSV = Path(os.environ.get("BROADREACH_PAPER", Path(__file__).parents[2] / "../shared/paper")) / "datasets.csv"
SMALL = ["eval.samples=4", "eval.problems=5", "engine.kind=fake"]
TRAIN = ["model.path=nano", "task.name=nano-chain", "task.max_train=32", "es.population=4", "train.batch=4"]
TRAIN += ["train.updates=2", "engine.kind=fake", "engine.threads=1", "es.sigma=0.01", "es.alpha=0.02"]
NAMES = {
    "GSM8K": "gsm8k",
    "CommonsenseQA": "commonsense_qa",
    "HotpotQA": "hotpotqa",
    "Countdown": "countdown",
    "GPQA": "gpqa",
    "MBPP": "mbpp-sanitized",
    "AIME 2024": "aime24",
    "AIME 2025": "aime25",
    "AMC 2023": "amc23",
    "MATH-500": "math500",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "one"
    train(load_config([], [*TRAIN, f"run.dir={folder}"]), RunFolder(folder), Silent())
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(trained, tmp_path / "runs" / "one")
    yield tmp_path / "runs" / "one"


@pytest.mark.skipif(not CSV.exists(), reason=f"{CSV} is not there")
@pytest.mark.parametrize("name", ["easy", "hard"])
def test_suites_are_the_papers(name: str) -> None:
    with open(CSV, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["setting"] == name]
    target = [NAMES[row["dataset"]] for row in rows if row["role"] in ("in_domain_test", "mathematical_test")]
    held_out = [NAMES[row["dataset"]] for row in rows if row["role"] == "held_out_test"]
    suite = get_suite(name)
    assert [one.task for one in suite.target] == target and [one.task for one in suite.held_out] == held_out
    for one in suite.tasks:
        row = next(row for row in rows if row["role"] != "post_training" and NAMES[row["dataset"]] == one.task)
        assert one.split == ("validation" if "validation" in row["split"] else "test")


def test_every_task_of_a_suite_exists_and_an_unknown_suite_is_named() -> None:
    assert {one.task for suite in SUITES.values() for one in suite.tasks} <= set(built_in_names())
    with pytest.raises(UserError, match="unknown suite 'hrad'; did you mean hard"):
        get_suite("hrad")
    with pytest.raises(UserError, match="suites: easy, hard, svamp, nano"):
        get_suite("xyz")


def test_a_suite_fills_the_folders_of_the_contract(run: Path) -> None:
    found = evaluate_suite(run, "nano", overrides=SMALL, baselines=BaselineSettings((0.3, 0.6), None))
    for task in ("", "nano-choice", "nano-context", "nano-countdown"):
        for name in ("base", "final"):
            place = run / "eval" / task / name
            assert load(place / "samples.jsonl").correct.shape == (5, 4)
            greedy = read_header(place / "greedy" / "samples.jsonl")
            assert (greedy.samples, greedy.temperature) == (1, 0.0)
            assert (place / "metrics.json").exists() and (place / "greedy" / "metrics.json").exists()
            assert read_entropy(place)
    said = json.loads((run / "eval" / "suite.json").read_text())
    assert said["target"] == "nano-chain" and said["tasks"][0] == "nano-chain" and len(said["held_out"]) == 3
    assert sorted(p.name for p in (run / "eval/baselines").iterdir()) == ["temperature-0.3", "weight-noise-0.01"]
    assert found.held_out is not None and found.held_out.problems == 15 and not found.left_out
    text = "\n".join(suite_lines(found))
    assert "greedy" in text and "token entropy" in text and "weight-noise-0.01" in text and "held out" in text


def test_a_second_call_draws_nothing_and_other_tasks_take_no_options(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [*SMALL, "eval.greedy=true", "eval.entropy=true"]
    first = evaluate(run, overrides=settings)
    monkeypatch.setattr(machinery, "build_engine", None)
    again = evaluate(run, overrides=settings)
    assert [m for _, _, m in again.stores] == [m for _, _, m in first.stores] and again.comparison == first.comparison
    assert again.measured["final"].entropy == first.measured["final"].entropy
    text = "\n".join(result_lines(again))
    assert "greedy" in text and "entropy on the base's responses" in text


def test_the_reward_of_the_training_task_is_not_carried_to_another_task(run: Path) -> None:
    toml = (run / "config.toml").read_text()
    changed = toml.replace(
        '[task]\nname = "nano-chain"', '[task]\nreward = "no_such_module:score"\nname = "nano-chain"'
    )
    assert changed != toml
    (run / "config.toml").write_text(changed)
    assert evaluate(run, "nano-choice", overrides=SMALL).task == "nano-choice"
    with pytest.raises(UserError, match="no_such_module"):
        evaluate(run, overrides=SMALL)


def test_a_task_without_data_is_left_out_and_only_nothing_at_all_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = Suite("half", (SuiteTask("nano-chain"),), (SuiteTask("nano-choice", "no-such-split"),))
    none = Suite("none", (SuiteTask("nano-choice", "no-such-split"),), ())
    monkeypatch.setattr(suites, "SUITES", {"half": half, "none": none})
    found = evaluate_suite("nano", "half", out=tmp_path / "half", overrides=SMALL)
    assert [result.task for result in found.results] == ["nano-chain"] and found.held_out is None
    assert found.left_out[0][0] == "nano-choice" and "no-such-split" in found.left_out[0][1]
    assert any("nano-choice is left out" in line for line in suite_lines(found))
    assert (tmp_path / "half/nano-chain/model/greedy/samples.jsonl").exists()
    assert json.loads((tmp_path / "half/suite.json").read_text())["left_out"][0]["task"] == "nano-choice"
    with pytest.raises(UserError, match="no task of suite none could be evaluated: nano-choice:"):
        evaluate_suite("nano", "none", out=tmp_path / "none", overrides=SMALL)


def test_an_equal_store_of_a_sibling_run_is_copied(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = [*SMALL, "eval.greedy=true", "eval.entropy=true"]
    shutil.copytree(run, run.with_name("two"))
    evaluate(run, overrides=settings)
    monkeypatch.setattr(machinery, "build_engine", None)
    found = evaluate(run.with_name("two"), overrides=settings)
    assert any("copied" in note and "one/eval/base" in note for note in found.notes)
    for name in ("samples.jsonl", "problems.jsonl", "entropy.json", "greedy/samples.jsonl"):
        assert (run / "eval/base" / name).read_bytes() == (run.with_name("two") / "eval/base" / name).read_bytes()


@pytest.mark.parametrize("damage", ["unfinished", "other settings"])
def test_an_unequal_store_is_not_copied(run: Path, damage: str) -> None:
    shutil.copytree(run, run.with_name("two"))
    evaluate(run, overrides=SMALL)
    if damage == "unfinished":
        for store in (run / "eval").rglob("samples.jsonl"):
            store.write_bytes(store.read_bytes()[:-10])
    settings = SMALL if damage == "unfinished" else [*SMALL, "eval.seed=2"]
    found = evaluate(run.with_name("two"), overrides=settings)
    assert not found.notes and load(run.with_name("two") / "eval/base/samples.jsonl").complete


def test_old_headers_load_and_keep_their_bytes(tmp_path: Path) -> None:
    from broadreach.evaluation.store import SampleStore

    header = StoreHeader("toy", "test", "d", "i", 0.6, 8, 2, 1, 1, "p")
    with SampleStore(tmp_path / "s.jsonl", header, ["p0"]):
        pass
    assert b"noise_sigma" not in (tmp_path / "s.jsonl").read_bytes() and read_header(tmp_path / "s.jsonl") == header
    noisy = StoreHeader("toy", "test", "d", "i", 0.0, 8, 2, 1, 1, "p", noise_sigma=0.5)
    with SampleStore(tmp_path / "n.jsonl", noisy, ["p0"]):
        pass
    assert read_header(tmp_path / "n.jsonl") == noisy
    with pytest.raises(UserError, match=r"noise_sigma: 0\.0, 0\.5"), SampleStore(tmp_path / "s.jsonl", noisy, ["p0"]):
        pass


def test_entropy_is_paired_by_problem_and_refused_without_a_store(run: Path) -> None:
    found = evaluate(run, overrides=[*SMALL, "eval.entropy=true"])
    base, final = (found.measured[name].entropy for name in ("base", "final"))
    assert base is not None and final is not None
    assert base["base"] == base["own"] and set(final["problem_entropy"]["base"]) == set(base["problem_entropy"]["own"])
    change = entropy_difference(final, base)
    assert change.value == pytest.approx(final["base"]["value"] - base["base"]["value"]) and change.n == 5
    with pytest.raises(UserError, match="evaluate both with --entropy"):
        entropy_difference(final, {"problem_entropy": {"base": {}}})
    (run / "eval/final/samples.jsonl").unlink()
    with pytest.raises(UserError, match="no sample store"):
        write_entropy(lambda: None, {}, "d", run / "eval/final")  # type: ignore[arg-type,return-value]
    with pytest.raises(UserError, match="no sample store"):
        compare_stores(run / "eval/base/samples.jsonl", run / "eval/final/samples.jsonl")


@pytest.mark.parametrize(
    ("baselines", "message"),
    [
        (BaselineSettings((0.0,), None), "greedy responses are a store of their own"),
        (BaselineSettings((0.3,), 0.0), "sigma above 0"),
    ],
)
def test_baselines_of_no_use_are_refused(run: Path, baselines: BaselineSettings, message: str) -> None:
    with pytest.raises(UserError, match=message):
        evaluate(run, overrides=SMALL, baselines=baselines)


def broadreach(*arguments: Any) -> tuple[int, str]:
    from typer.testing import CliRunner

    from broadreach.cli import app

    result = CliRunner().invoke(app, [str(a) for a in arguments])
    return result.exit_code, f"{result.output}{result.exception or ''}"


def test_the_command_line_says_what_is_wrong_in_one_line(run: Path, tmp_path: Path) -> None:
    from broadreach.models.locate import locate

    for arguments, message in [
        (("--suite", "nanu"), "did you mean nano"),
        (("--suite", "nano", "--task", "nano-chain"), "leave --task and --split out"),
        (("--temperatures", "0.3"), "belong to --baselines"),
        (("--baselines", "--temperatures", "warm"), "numbers with commas"),
        (("--step", "1", "--baselines"), "leave --step out"),
    ]:
        code, said = broadreach("eval", run, *arguments)
        assert code != 0 and message in said
    bare = tmp_path / "bare"
    shutil.copytree(locate("nano"), bare)
    for file in bare.glob("token*"):
        file.unlink()
    code, said = broadreach("eval", bare, "--task", "nano-chain")
    assert code != 0 and "has no tokenizer" in said


def test_the_command_line_evaluates_a_suite_on_a_plain_model(tmp_path: Path) -> None:
    options = [word for item in SMALL for word in ("--set", item)]
    code, said = broadreach("eval", "nano", "--suite", "nano", "--no-entropy", "--out", tmp_path / "out", *options)
    assert code == 0 and "nano-countdown:" in said and "greedy" in said and "entropy" not in said
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.is_dir()) == [
        one.task for one in SUITES["nano"].tasks
    ]
