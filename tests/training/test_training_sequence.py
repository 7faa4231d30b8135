"""Stages hand over saved directories whose digests are checked, share one budget, and are not trained twice."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from broadreach.commands.api import start
from broadreach.config import load_config, to_toml
from broadreach.models.distance import relative_l2
from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.training import drift
from broadreach.training.drift import drift_meter
from broadreach.training.rebuild import rebuild
from broadreach.training.stages import plan_stages, read_stages
from broadreach.types import UserError

sys.path.insert(0, str(Path(__file__).parent))
from grpo_tiny import configure, save_tiny_model
from listeners import Notes, StopAfter

STRONG = ["es.alpha=0.02", "es.sigma=0.02", "grpo.mini_batch=0", "grpo.beta=0.01"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture
def train(model, tmp_path):
    """Train in tmp_path/name; returns (run, what was said)."""

    def _train(name, *extra, reporter=None):
        said, run = reporter or Notes(), RunFolder(tmp_path / name)
        start(configure(model, run.path, *STRONG, *extra), run, said)
        return run, said

    return _train


def weights(folder):
    return digest(load_centre(folder))


def test_es_then_grpo_goes_on_from_the_export_and_along_the_same_prompts(model, train):
    run, said = train("both", "train.stages=es->grpo")
    first, second = read_stages(run)
    assert (first.updates, second.updates) == (2, 2)
    assert first.start == weights(model)
    assert first.end == second.start == weights(run.path / "stage-1-es" / "export")
    assert second.end == weights(run.export) == json.loads(run.done_file.read_text())["digest"]
    assert len({first.start, first.end, second.end}) == 3
    assert "split by updates, as the paper does" in said.notes[0]
    assert [(line["step"], line["method"]) for line in said.updates] == [(1, "es"), (2, "es"), (3, "grpo"), (4, "grpo")]
    assert said.updates[2]["kl"] == pytest.approx(0.0, abs=1e-9)
    lines = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    whole, _ = train("whole", "train.method=es")
    by_es = [list(entry.record.problems) for entry in read_ledger(whole.ledger_file).entries]
    assert [line["problems"] for line in said.updates[2:]] == by_es[2:]
    expected = [first.start, first.end, second.end]
    assert [digest(rebuild(run, step)[0]) for step in (0, 2, 4)] == expected
    assert digest(rebuild(run)[0]) == second.end
    with pytest.raises(UserError, match="updates 0 \\(the base\\) to 4: there is no update 5"):
        rebuild(run, 5)


@pytest.mark.parametrize("stages", ["es->grpo", "grpo->es"])
def test_every_stage_measures_its_drift_from_the_base_of_the_run(model, train, stages):
    run, said = train("both", f"train.stages={stages}", "train.reuse=false")
    base = load_centre(model)
    expected = [relative_l2(rebuild(run, step)[0], base.items()) for step in (1, 2, 3, 4)]
    assert [line["drift"] for line in said.updates] == pytest.approx(expected, rel=1e-6)
    stored = [json.loads(line)["drift"] for line in run.metrics_file.read_text().splitlines()]
    assert stored == [line["drift"] for line in said.updates]


@pytest.mark.parametrize("stages", ["es->grpo", "grpo->es"])
def test_a_resumed_stage_measures_from_the_same_base(train, stages):
    undisturbed, _ = train("undisturbed", f"train.stages={stages}", "train.reuse=false")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", f"train.stages={stages}", "train.reuse=false", reporter=StopAfter(3))
    run, _ = train("stopped", f"train.stages={stages}", "train.reuse=false")
    drifts = [
        [json.loads(line)["drift"] for line in one.metrics_file.read_text().splitlines()] for one in (run, undisturbed)
    ]
    assert drifts[0] == drifts[1]


def test_a_large_model_is_measured_from_the_files_of_the_same_base(model, tmp_path, monkeypatch):
    start = load_centre(save_tiny_model(tmp_path / "start", seed=1))
    moved = {name: array + 0.01 for name, array in start.items()}
    small = drift_meter(tmp_path / "start", start, model).relative(moved, due=False)
    assert small == pytest.approx(relative_l2(moved, load_centre(model).items()))
    monkeypatch.setattr(drift, "SMALL_MODEL", 0)
    large = drift_meter(tmp_path / "start", start, model)
    assert large.relative(moved, due=False) is None and large.relative(moved, due=True) == pytest.approx(small)
    assert drift_meter(tmp_path / "start", start, None).relative(start, due=False) == 0.0


@pytest.mark.parametrize("method", ["es", "grpo"])
def test_the_first_half_of_a_run_is_reused_and_changes_nothing(train, method):
    other = "grpo" if method == "es" else "es"
    whole, _ = train("whole", f"train.method={method}")
    stages = f"train.stages={method}->{other}"
    trained, _ = train("trained", stages, "train.reuse=false")
    reused, said = train("reused", stages)
    assert read_stages(reused)[0].reused == str(whole.path) and any("are reused" in note for note in said.notes)
    assert read_stages(trained)[0].reused is None
    assert [line["method"] for line in said.updates] == [other, other]
    assert (reused.export / "model.safetensors").read_bytes() == (trained.export / "model.safetensors").read_bytes()
    stage = f"stage-1-{method}"
    if method == "es":
        ledgers = [(run.path / stage / "ledger.jsonl").read_bytes() for run in (reused, trained)]
        assert ledgers[0] == ledgers[1]
    assert digest(rebuild(reused, 2)[0]) == digest(rebuild(trained, 2)[0]) == digest(rebuild(whole, 2)[0])
    assert len(reused.metrics_file.read_text().splitlines()) == 4


@pytest.mark.parametrize("difference", ["seed=1", "es.sigma=0.03", "train.batch=6"])
def test_another_seed_or_setting_is_not_reused(train, difference):
    train("whole", "train.method=es", "train.updates=2")
    run, _ = train("both", "train.stages=es->grpo", "train.updates=2", difference)
    assert read_stages(run)[0].reused is None


def test_interrupted_in_the_second_stage_and_resumed(train):
    undisturbed, _ = train("undisturbed", "train.stages=grpo->es", "train.reuse=false")
    with pytest.raises(KeyboardInterrupt):
        train("stopped", "train.stages=grpo->es", "train.reuse=false", reporter=StopAfter(3))
    run, said = train("stopped", "train.stages=grpo->es", "train.reuse=false")
    assert said.updates[-1]["step"] == 4 and said.started[0][1] == 4
    assert (run.export / "model.safetensors").read_bytes() == (undisturbed.export / "model.safetensors").read_bytes()
    _, said = train("stopped", "train.stages=grpo->es", "train.reuse=false")
    assert "is finished: all 2 stages" in said.notes[0]


def test_a_changed_handover_is_refused(train, model, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train("run", "train.stages=es->grpo", reporter=StopAfter(3))
    shutil.copyfile(model / "model.safetensors", tmp_path / "run" / "stage-1-es" / "export" / "model.safetensors")
    with pytest.raises(UserError, match=r"stage 2 \(grpo\) would start from .* but stage 1 \(es\) left .* was changed"):
        train("run", "train.stages=es->grpo")


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (
            '["es", {method="grpo", set={"model.path"="nano"}}]',
            r"stage 2 \(grpo\) sets model\.path: a stage starts from",
        ),
        ('["es", {method="grpo", set={"train.updates"=3}}]', "write updates beside set"),
        ('["es", {method="grpo", set={"grpo.betta"=1}}]', r"unknown key grpo\.betta \(from stage 2\); did you mean"),
        ('["es", {method="grpo", set={"grpo.mini_batch"=3}}]', r"grpo\.mini_batch = 3 does not divide"),
        ('["es", {method="grpo", updates=4}, "es"]', "4 updates are not enough for 3 stages, 4 of them given"),
    ],
)
def test_bad_stages_are_found_before_the_first_one_trains(train, tmp_path, stages, words):
    with pytest.raises(UserError, match=words) as caught:
        train("bad", f"train.stages={stages}")
    assert "\n" not in str(caught.value) and not (tmp_path / "bad" / "stage-1-es").exists()


def test_stages_cannot_change_their_length_once_begun(train):
    with pytest.raises(KeyboardInterrupt):
        train("run", "train.stages=es->es", reporter=StopAfter(3))
    with pytest.raises(UserError, match=r"has the stages es 2, es 2, the settings now ask for es 3, es 3"):
        train("run", "train.stages=es->es", "train.updates=6")


def test_plan_seeds_prompts_and_tasks(model, tmp_path):
    stages = '["es", "es", {method="grpo", updates=3, set={task={name="nano-countdown"}, "grpo.preset"="dr_grpo"}}]'
    config = configure(model, tmp_path, "train.updates=10", "seed=5", f"train.stages={stages}")
    one, two, three = (settings for _, settings in plan_stages(config, RunFolder(tmp_path)))
    assert [settings.train.updates for settings in (one, two, three)] == [4, 3, 3]
    assert [settings.train.skip_batches for settings in (one, two, three)] == [0, 4, 0]
    assert one.seed == 5 and len({one.seed, two.seed, three.seed}) == 3
    assert (one.train.data_seed, two.train.data_seed, three.train.data_seed) == (None, 5, 5)
    assert three.task.name == "nano-countdown" and two.task.name == "nano-chain"
    assert (three.grpo.loss, three.grpo.beta, three.grpo.group_size) == ("dr_grpo", 0.0, 8)


def test_equal_shares_of_responses(model, tmp_path):
    def updates(stages):
        extra = ["train.updates=8", "train.stage_split=responses", "es.population=16", f"train.stages={stages}"]
        return [stage.updates for stage, _ in plan_stages(configure(model, tmp_path, *extra), RunFolder(tmp_path))]

    assert updates("es->grpo") == [4, 16]
    assert updates("grpo->es") == [4, 1]


def test_stages_survive_the_saved_configuration(tmp_path):
    config = load_config([], ['train.stages=["es->grpo", {method="es", set={"task.name"="nano-choice"}}]'])
    (tmp_path / "c.toml").write_text(to_toml(config))
    assert load_config([tmp_path / "c.toml"]) == config and len(config.train.stages) == 3
