"""The weight-space commands on real runs of the bundled model, and their answers to mistakes."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import broadreach
from broadreach.cli import app
from broadreach.config import load_config
from broadreach.evaluation.store import read_header
from broadreach.runs.folder import RunFolder
from broadreach.types import UserError

SMALL = [
    "es.population=4",
    "es.sigma=0.02",
    "es.alpha=0.003",
    "train.batch=6",
    "sampling.temperature=0.8",
    "sampling.max_new_tokens=12",
    "engine.threads=1",
    "eval.problems=4",
    "eval.samples=2",
    "train.stop_when_idle=0",
]
STAGES = 'train.stages=[{method="es", updates=1}, {method="es", updates=1, set={"task.name"="nano-countdown"}}]'


def analyze(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["analyze", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def read(folder: Path, name: str) -> tuple[dict, list[dict]]:
    with open(folder / f"{name}.csv", newline="") as file:
        return json.loads((folder / f"{name}.json").read_text()), list(csv.DictReader(file))


def train(folder: Path, *extra: str) -> RunFolder:
    return broadreach.train(load_config([], [*SMALL, *extra, f"run.dir={folder}"]))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    return train(tmp_path_factory.mktemp("runs") / "small", "train.updates=3")


def test_drift_of_a_run_from_its_base_and_between_models(run):
    out = analyze("drift", run.path)
    values, rows = read(run.path / "analysis", "drift")
    assert "largest changes" in out and values["model"]["moved"] > 0.99 * values["model"]["parameters"]
    metrics = json.loads(run.metrics_file.read_text().splitlines()[-1])
    assert values["model"]["relative_l2"] == pytest.approx(metrics["drift"], rel=1e-6)
    assert {row["level"] for row in rows} == {"model", "kind", "layer", "tensor"} and len(values["top"]) == 100
    assert sum(int(row["parameters"]) for row in rows if row["level"] == "tensor") == values["model"]["parameters"]
    assert values["command"].startswith("broadreach")
    analyze("drift", "nano", run.path, "--other", run.path, "--other-step", 3, "--out", run.path / "elsewhere")
    values, _ = read(run.path / "elsewhere", "drift")
    assert values["model"]["cosine"] == pytest.approx(1)


def test_null_of_a_run_explains_its_distance(run):
    out = analyze("null", run.path, "--seeds", 2, "--sample", 4000)
    values, rows = read(run.path / "analysis", "null")
    assert "closed form" in out and "observed" in out
    [relative] = [r for r in rows if r["level"] == "model" and r["statistic"] == "relative_l2" and r["null"] == "exact"]
    assert float(relative["observed"]) == pytest.approx(float(relative["value"]), rel=0.05)
    assert float(relative["excess_low"]) <= float(relative["excess"]) <= float(relative["excess_high"])
    assert values["settings"]["restores"] == {"1": 4} and {row["level"] for row in rows} == {"model", "kind", "layer"}


def test_null_of_plain_settings_against_observed_weights(run, tmp_path):
    settings = (
        "--steps",
        3,
        "--members",
        4,
        "--engines",
        "1,4",
        "--sigma",
        0.02,
        "--alpha",
        0.003,
        "--dtype",
        "float32",
    )
    out = analyze(
        "null", "nano", *settings, "--observed", run.export, "--seeds", 2, "--sample", 2000, "--out", tmp_path
    )
    _, rows = read(tmp_path, "null")
    names = {row["null"] for row in rows}
    assert names == {"exact", "paper, 4 restores an update", "paper, 1 restores an update"} and "observed" in out
    kinds = [row for row in rows if row["level"] == "kind" and row["null"] == "exact"]
    tops = [float(row["observed"]) for row in kinds if row["statistic"] == "share_of_top_100"]
    assert sum(tops) == pytest.approx(1)


def test_null_of_a_published_run_lays_the_published_numbers_beside(tmp_path):
    out = analyze(
        "null", "nano", "--paper", "qwen2.5-1.5b", "--dtype", "bfloat16", "--seeds", 1, "--sample", 500,
        "--precision", "exact", "--out", tmp_path,
    )  # fmt: skip
    _, rows = read(tmp_path, "null")
    [row] = [row for row in rows if row["level"] == "model" and row["statistic"] == "s_0.001"]
    assert row["published"] == "0.7911" and float(row["closed_form"]) == pytest.approx(0.8609, abs=1e-3)
    assert "published minus null is off for" in out


def test_threshold_evaluates_every_control_and_goes_on(run):
    arguments = ("threshold", run.path, "--taus", "0.001,0.002", "--controls", "threshold,random-count")
    analyze(*arguments)
    _, rows = read(run.path / "analysis", "threshold")
    assert {row["control"] for row in rows} == {"full", "base", "threshold", "random-count"}
    assert len([row for row in rows if row["metric"] == "pass"]) == 2 * (2 + 2 * 2)
    by_tau = {row["tau"]: float(row["sparsity"]) for row in rows if row["control"] == "threshold"}
    assert 0 < by_tau["0.001"] < by_tau["0.002"] < 1
    places = list((run.path / "analysis" / "threshold").glob("*/samples.jsonl"))
    assert {place.parent.name for place in places} >= {"base", "full", "threshold-0.001", "random-count-0.002"}
    assert len({read_header(place).model_digest for place in places}) == len(places)
    before = {place: place.read_bytes() for place in places}
    half = run.path / "analysis" / "threshold" / "threshold-0.001" / "samples.jsonl"
    half.write_bytes(b"".join(before[half].splitlines(keepends=True)[:4]))  # killed inside of its second problem
    analyze(*arguments)
    assert before == {place: place.read_bytes() for place in places}


def test_path_from_base_to_run(run):
    analyze("path", run.path, "--points", "0,0.5,1")
    _, rows = read(run.path / "analysis", "path")
    assert [row["t"] for row in rows if row["k"] == "2"] == ["0.0", "0.5", "1.0"]
    [middle] = [row for row in rows if row["t"] == "0.5" and row["k"] == "1"]
    assert middle["minus_start"] and middle["minus_end_low"]
    store = run.path / "analysis" / "path" / "t+1" / "samples.jsonl"
    assert read_header(store).model_digest == json.loads(run.ledger_file.read_text().splitlines()[-1])["digest"]


def test_precision_replays_both_arithmetics(run):
    analyze("precision", run.path)
    values, rows = read(run.path / "analysis", "precision")
    assert {row["precision"] for row in rows} == {"exact", "paper"} and values["between"] > 0


def test_forgetting_from_stores_and_over_stages(run, tmp_path):
    for task in ("nano-chain", "nano-countdown"):
        broadreach.evaluate(run.path, task)
    analyze("forgetting", run.path)
    _, rows = read(run.path / "analysis", "forgetting")
    assert {(row["task"], row["role"]) for row in rows} == {("nano-chain", "target"), ("nano-countdown", "held out")}
    stages = train(tmp_path / "stages", "train.updates=2", STAGES)
    out = analyze("forgetting", stages.path)
    _, rows = read(stages.path / "analysis", "forgetting")
    assert "backward_transfer" in out
    cells = [(row["stage"], row["task"]) for row in rows if row["measure"] == "accuracy" and row["k"] == "1"]
    assert cells == [(str(s), t) for s in range(3) for t in ("nano-chain", "nano-countdown")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("drift", "{run}", "--step", 9), "updates 0 .* to 3: there is no update 9"),
        (("drift", "nano"), "is not a run folder"),
        (("drift", "nano", "nano", "--step", 1), "a step needs one"),
        (("drift", "nano", "nano", "--taus", "0.2,0.1"), "positive and increasing"),
        (("drift", "nano", "nano", "--taus", "a"), "--taus a: give numbers"),
        (("null", "nano"), "--steps"),
        (("null", "nano", "--paper", "gpt"), "qwen2.5-1.5b"),
        (("null", "{run}", "--steps", 3), "brings its own settings"),
        (("null", "{run}", "--step", 4), "there is no update 4|updates 1 to 3"),
        (("null", "{run}", "--engines", 3), "do not divide"),
        (("null", "{run}", "--precision", "double"), "none of exact"),
        (("threshold", "{run}", "--taus", "-1"), "positive and increasing"),
        (("threshold", "{run}", "--controls", "all"), "none of threshold"),
        (("threshold", "{run}", "--k", "9"), "2 responses a problem"),
        (("path", "{run}", "--points", "0,0"), "different finite numbers"),
        (("precision", "{run}", "--step", 7), "there is no update 7"),
        (("threshold", "nano-none"), "is not a run folder"),
    ],
)
def test_mistakes_are_one_clear_line(run, arguments, message):
    words = [str(word).replace("{run}", str(run.path)) for word in arguments]
    with pytest.raises(UserError, match=message) as caught:
        analyze(*words)
    assert "\n" not in str(caught.value)
