"""Kill a run at twenty instants, resume it, and end with the ledger and the weights of the undisturbed run."""

import json
import multiprocessing
import os
import random
import sys
from pathlib import Path

import pytest

from broadreach.models.locate import locate
from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.checkpoint import replay
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger

sys.path.insert(0, str(Path(__file__).parent))
import crash_child

COMMON = ["model.path=nano", "task.name=nano-chain", "es.population=4", "train.batch=4", "task.max_train=64"]
COMMON.append("train.stop_when_idle=0")
FAST = [*COMMON, "engine.kind=fake", "es.sigma=0.01", "es.alpha=0.01", "train.updates=50", "run.snapshot_every=10"]
REAL = [
    *COMMON,
    "engine.threads=1",
    "es.sigma=0.02",
    "es.alpha=0.02",
    "train.updates=6",
    "sampling.temperature=0.8",
    "sampling.max_new_tokens=12",
    "run.snapshot_every=2",
]


@pytest.fixture(scope="module")
def launch():
    """Run a training process from a fork server that has imported everything: a child starts in milliseconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crash_child"])
    patch = pytest.MonkeyPatch()
    # the fork server of Python 3.11 does not get our sys.path, and would silently preload nothing
    patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)

    def start(settings, folder, how=None, *arguments):
        process = context.Process(target=crash_child.run, args=([*settings, f"run.dir={folder}"], how, *arguments))
        process.start()
        process.join(timeout=300)
        assert process.exitcode is not None, "the child hangs"
        return process.exitcode

    yield start
    patch.undo()


def undisturbed_run(launch, settings, folder):
    assert launch(settings, folder) == 0
    entries = read_ledger(RunFolder(folder).ledger_file).entries
    moved = sum(entry.record.update is not None for entry in entries)
    assert moved >= len(entries) // 2, "the reference run must move the weights, or this test shows nothing"
    return RunFolder(folder)


@pytest.fixture(scope="module")
def fast(launch, tmp_path_factory):
    return undisturbed_run(launch, FAST, tmp_path_factory.mktemp("fast") / "run")


@pytest.fixture(scope="module")
def real(launch, tmp_path_factory):
    return undisturbed_run(launch, REAL, tmp_path_factory.mktemp("real") / "run")


def assert_same_run(folder, undisturbed):
    run = RunFolder(folder)
    assert run.ledger_file.read_bytes() == undisturbed.ledger_file.read_bytes()
    assert json.loads(run.done_file.read_text()) == json.loads(undisturbed.done_file.read_text())
    assert (run.export / "model.safetensors").read_bytes() == (undisturbed.export / "model.safetensors").read_bytes()
    steps = [json.loads(line)["step"] for line in run.metrics_file.read_text().splitlines()]
    assert steps == list(range(1, len(steps) + 1)) and len(steps) == run.finished_updates()


@pytest.mark.parametrize("share", [0.02, 0.6])
@pytest.mark.parametrize("count", [1, 2, 11, 51])
def test_killed_inside_a_ledger_write(launch, fast, tmp_path, count, share):
    folder = tmp_path / "run"
    assert launch(FAST, folder, "kill_inside_ledger_write", count, share) == -9
    assert launch(FAST, folder) == 0
    assert_same_run(folder, fast)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_killed_inside_a_snapshot(launch, fast, tmp_path, count):
    folder = tmp_path / "run"
    assert launch(FAST, folder, "kill_inside_snapshot", count) == -9
    assert launch(FAST, folder) == 0
    assert_same_run(folder, fast)


@pytest.mark.parametrize("count", [3, 20])
def test_killed_inside_generation(launch, real, tmp_path, count):
    folder = tmp_path / "run"
    assert launch(REAL, folder, "kill_inside_generation", count) == -9
    assert launch(REAL, folder) == 0
    assert_same_run(folder, real)


def test_killed_at_random_instants_until_it_is_done(launch, fast, tmp_path):
    generator = random.Random(0)
    folder, kills = tmp_path / "run", 0
    while kills < 9 and launch(FAST, folder, "kill_after", generator.uniform(0.3, 2.5)) == -9:
        kills += 1
    assert kills >= 2
    assert launch(FAST, folder) == 0
    assert_same_run(folder, fast)


def test_replay_of_fifty_updates_gives_the_live_weights_at_every_one(fast):
    entries = read_ledger(fast.ledger_file).entries
    centre = load_centre(locate("nano"))
    seen = []
    replay(
        centre,
        entries,
        read_ledger(fast.ledger_file).header,
        visit=lambda step, weights: seen.append((step, digest(weights))),
    )
    assert seen == [(entry.record.step, entry.digest) for entry in entries] and len(seen) == 50
    assert len({value for _, value in seen}) > 25
