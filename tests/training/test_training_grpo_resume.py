"""GRPO stopped at any point goes on from the end of an update and ends like the undisturbed run."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.training import grpo
from broadreach.training.grpo_checkpoint import MARKER, checkpoint_dir, complete
from broadreach.training.rebuild import rebuild
from broadreach.types import UserError

sys.path.insert(0, str(Path(__file__).parent))
from grpo_tiny import configure, save_tiny_model
from listeners import Notes, StopAfter

TIMES = ("seconds", "peak_memory_mb")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def undisturbed(model, tmp_path_factory):
    run = RunFolder(tmp_path_factory.mktemp("runs") / "undisturbed")
    grpo.train(configure(model, run.path, "train.updates=5", "run.snapshot_every=2"), run, Notes())
    return run


def start(model, folder, *extra, reporter=None):
    said, run = reporter or Notes(), RunFolder(folder)
    grpo.train(configure(model, folder, "train.updates=5", "run.snapshot_every=2", *extra), run, said)
    return run, said


def lines(run):
    """metrics.jsonl without what the clock and the machine say."""
    rows = [json.loads(line) for line in run.metrics_file.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in TIMES} for row in rows]


@pytest.fixture
def stopped(model, tmp_path):
    """A run that was interrupted in update 4; its last checkpoint is that of update 2."""
    with pytest.raises(KeyboardInterrupt):
        start(model, tmp_path / "run", reporter=StopAfter(4))
    return RunFolder(tmp_path / "run")


def test_resume_ends_with_the_bits_of_the_undisturbed_run(model, stopped, undisturbed):
    assert len(lines(stopped)) == 4 and [c.update for c in complete(stopped)] == [2]
    run, said = start(model, stopped.path)
    assert "resuming after update 2" in said.notes[-1] and said.started == [(2, 5, 16)]
    assert lines(run) == lines(undisturbed)
    assert (run.export / "model.safetensors").read_bytes() == (undisturbed.export / "model.safetensors").read_bytes()
    assert run.done_file.read_bytes() == undisturbed.done_file.read_bytes()


def test_a_resume_inside_an_update_is_refused_with_the_reason(model, stopped):
    inside = checkpoint_dir(stopped, 5)
    shutil.copytree(checkpoint_dir(stopped, 4), inside)
    (inside / MARKER).unlink()
    with pytest.raises(UserError, match=r"checkpoint-5 was saved after optimiser step 5, inside update 3 .*responses"):
        start(model, stopped.path)


def test_a_save_that_was_cut_short_is_passed_over(model, stopped, undisturbed):
    torn = checkpoint_dir(stopped, 6)
    shutil.copytree(checkpoint_dir(stopped, 4), torn)
    (torn / MARKER).unlink()
    (torn / "trainer_state.json").unlink()
    run, said = start(model, stopped.path)
    assert "cut short" in said.warnings[0]
    assert run.done_file.read_bytes() == undisturbed.done_file.read_bytes()


def test_other_settings_or_another_base_are_refused(model, stopped, tmp_path):
    with pytest.raises(UserError, match=r"grpo\.learning_rate: 0\.003 -> 0\.1"):
        start(model, stopped.path, "grpo.learning_rate=0.1")
    original = (model / "model.safetensors").read_bytes()
    try:
        shutil.copyfile(save_tiny_model(tmp_path / "other", seed=1) / "model.safetensors", model / "model.safetensors")
        with pytest.raises(UserError, match="base model changed"):
            start(model, stopped.path)
    finally:
        (model / "model.safetensors").write_bytes(original)


def test_a_finished_run_says_so_and_can_grow(model, undisturbed, tmp_path):
    grown = tmp_path / "grown"
    shutil.copytree(undisturbed.path, grown)
    _, said = start(model, grown)
    assert "is finished" in said.notes[0] and not said.updates
    run, said = start(model, grown, "train.updates=6")
    assert [line["step"] for line in said.updates] == [6] and run.finished_updates() == 6


def test_checkpoints_are_plain_directories_and_the_middle_one_keeps_its_weights(model, tmp_path):
    run, _ = start(model, tmp_path / "run", "run.snapshot_every=1", "run.keep_snapshots=2")
    kept = complete(run)
    assert [checkpoint.update for checkpoint in kept] == [2, 4, 5]
    for checkpoint in kept:
        folder = checkpoint_dir(run, checkpoint.optimiser_step)
        assert digest(load_centre(folder)) == checkpoint.digest
        assert (folder / "optimizer.pt").exists() == (checkpoint.update != 2)
    assert digest(load_centre(run.export)) == kept[-1].digest == json.loads(run.done_file.read_text())["digest"]


def test_weights_of_kept_updates_and_no_others(model, undisturbed):
    assert digest(rebuild(undisturbed, 0)[0]) == digest(load_centre(model))
    assert digest(rebuild(undisturbed)[0]) == digest(load_centre(undisturbed.export))
    assert digest(rebuild(undisturbed, 2)[0]) == complete(undisturbed)[0].digest
    with pytest.raises(UserError, match=r"no weights of update 3 .*kept: 0, 2, 4, 5"):
        rebuild(undisturbed, 3)
