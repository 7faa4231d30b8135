"""`analyze diversity`, `estimator` and `probe` on the bundled model, small, and what they say to a mistake."""

import csv
import json

import pytest
import typer
from typer.testing import CliRunner

import broadreach
from broadreach.commands.analyze import diversity, estimator, probe
from broadreach.config import load_config
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.types import UserError

app = typer.Typer(pretty_exceptions_enable=False)
app.command("diversity")(diversity.diversity)
app.command("estimator")(estimator.estimator)
app.command("probe")(probe.probe)

SETTINGS = [
    "model.path=nano",
    "es.population=4",
    "es.sigma=0.02",
    "train.batch=8",
    "train.updates=2",
    "sampling.max_new_tokens=24",
    "train.stop_when_idle=0",
]
SMALL = ["--samples", "4", "--problems", "3", "--centre-samples", "8", "--k", "1,8", "--policy-responses", "4"]


def analyze(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*arguments):
    with pytest.raises(UserError) as caught:
        CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    return RunFolder(broadreach.train(load_config([], [*SETTINGS, f"run.dir={folder}"])).path)


def test_diversity_at_every_step_of_a_run(run):
    out = analyze("diversity", run.path, "--steps", "0,1,2", "--gradients", 2, *SMALL)
    place = run.path / "analysis"
    rows = list(csv.DictReader((place / "diversity.csv").open()))
    found = json.loads((place / "diversity.json").read_text())
    for step in ("0", "1", "2"):
        values = {row["quantity"]: row for row in rows if row["step"] == step}
        assert float(values["p_pop"]["value"]) >= float(values["mean_success"]["value"])
        assert float(values["js_pol"]["value"]) > 0 and float(values["fisher_trace"]["value"]) > 0
        assert float(values["population_entropy"]["value"]) > float(values["member_entropy"]["value"])
        assert values["js_succ"]["n"] == "3" and values["js_succ"]["low"] <= values["js_succ"]["value"]
        assert 0 < found["steps"][step]["null"]["js_succ"]["p_value"] <= 1
    assert "rewards of update 1 in the ledger" in found["steps"]["0"]["weights"]
    assert "problems that update 3 would see" in found["steps"]["2"]["weights"]
    assert found["steps"]["1"]["condition_13"]["8"]["held"] in (True, False)
    assert found["steps"]["2"]["condition_13"]["8"]["held"] is None  # nothing follows the last update
    assert found["steps"]["1"]["centre_digest"] == read_ledger(run.ledger_file).entries[0].digest
    assert "condition (13), K = 8" in out and "equal members would show" in out
    stored = {path: path.read_bytes() for path in place.rglob("responses.jsonl")}
    assert len(stored) == 3
    assert analyze("diversity", run.path, "--steps", "0,1,2", "--gradients", 2, *SMALL) == out
    assert {path: path.read_bytes() for path in stored} == stored  # nothing is drawn twice


def test_a_sigma_of_ones_own_takes_its_weights_from_the_next_batch(run, tmp_path):
    small = [*SMALL[:-1], "0"]
    out = analyze("diversity", run.path, "--step", 0, "--sigma", 0.001, "--members", 3, "--out", tmp_path, *small)
    assert "problems that update 1 would see" in out and "sigma 0.001" in out and "3 members" in out
    assert "js_pol" not in (tmp_path / "diversity.csv").read_text()


def test_mistakes_of_diversity_are_one_line_each(run, tmp_path):
    assert "at least 4" in refusal("diversity", run.path, "--samples", 1)
    assert "updates 0 (the base) to 2: there is no update 3" in refusal("diversity", run.path, "--steps", "0,3")
    assert "evaluates 4 members" in refusal("diversity", run.path, "--members", 5)
    assert "greedy" in refusal("diversity", run.path, "--temperature", 0)
    assert "--centre-samples 128" in refusal("diversity", run.path, "--k", "1,128")
    assert "not a run folder" in refusal("diversity", tmp_path)
    assert "--steps" in refusal("diversity", run.path, "--step", 1, "--steps", "0,1")
    assert "split test has" in refusal("diversity", run.path, "--problems", 10_000_000)


def test_estimator_fills_both_panels(tmp_path):
    sizes = ["--prompts", 3, "--seeds", 2, "--rollouts", 3, "--targets", 4, "--directions", 2]
    arguments = ["estimator", "nano", *sizes, "--sigmas", "0.001,0.02", "--max-new-tokens", 16, "--out", tmp_path]
    out = analyze(*arguments)
    rows = list(csv.DictReader((tmp_path / "estimator.csv").open()))
    assert len(rows) == 12  # six objectives at two sigmas
    by_name = {(row["objective"], row["coupling"], row["sigma"]): row for row in rows}
    assert by_name["grpo_surrogate", "fixed_rollout", "0.001"]["kappa_base_paper"] == "0.0006"
    assert by_name["grpo_surrogate", "fixed_rollout", "0.02"]["kappa_base_paper"] == ""
    assert int(by_name["supervised_cross_entropy", "fixed_batch", "0.001"]["observations"]) == 8
    assert float(by_name["supervised_cross_entropy", "fixed_batch", "0.001"]["kappa_base"]) < 0.1
    assert "regenerated reward over sigma" in out
    assert analyze(*arguments) == out


def test_mistakes_of_estimator_are_one_line_each(tmp_path):
    assert "positive" in refusal("estimator", "nano", "--sigmas", "0.1,-1")
    assert "--sigmas abc" in refusal("estimator", "nano", "--sigmas", "abc")
    assert "no seeds to share" in refusal("estimator", "nano", "--temperature", 0)
    assert "--prompts 1: give at least 2" in refusal("estimator", "nano", "--prompts", 1)
    assert "unknown task" in refusal("estimator", "nano", "--task", "nano-chian")
    assert "does not exist" in refusal("estimator", str(tmp_path / "nowhere"))


def test_probe_measures_every_sigma_and_gives_a_reason(tmp_path):
    options = ["--members", 4, "--prompts", 4, "--set", "sampling.max_new_tokens=24", "--out", tmp_path]
    arguments = ["probe", "demo", "--sigmas", "0.02,0.0000001", *options]
    out = analyze(*arguments)
    rows = list(csv.DictReader((tmp_path / "probe.csv").open()))
    assert [float(row["sigma"]) for row in rows] == [1e-7, 0.02]
    assert float(rows[0]["spread"]) == 0.0 and rows[0]["share"] == ""  # too small to change an answer
    assert "advice: " in out and "greedy" in out
    assert analyze(*arguments) == out


def test_probe_of_a_model_at_a_temperature_has_a_floor_of_repeats(tmp_path):
    options = ["--members", 4, "--prompts", 4, "--repeats", 3, "--set", "sampling.temperature=1.0", "--out", tmp_path]
    analyze("probe", "nano", "--task", "nano-choice", "--sigmas", "0.01", *options)
    found = json.loads((tmp_path / "probe.json").read_text())
    assert found["noise_floor"]["repeats"] > 0 and found["noise_floor"]["greedy"] is False


def test_mistakes_of_probe_are_one_line_each():
    assert "--task NAME" in refusal("probe", "nano")
    assert "two disjoint batches need" in refusal("probe", "demo", "--prompts", 1_000_000)
    assert "positive" in refusal("probe", "demo", "--sigmas", "0")
