"""Kill a run at twenty instants, resume it, and end with the ledger and the weights of the undisturbed run."""

import json
import multiprocessing
import random
import sys
from pathlib import Path

import pytest

from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger

sys.path.insert(0, str(Path(__file__).parent))
import crash_child

UPDATES = 8
SETTINGS = [
    "model.path=nano",
    "task.name=nano-chain",
    "es.population=4",
    "es.sigma=0.01",
    "es.alpha=0.01",
    "train.batch=4",
    f"train.updates={UPDATES}",
    "train.stop_when_idle=0",
    "sampling.temperature=0.8",
    "sampling.max_new_tokens=12",
    "run.snapshot_every=3",
    "engine.threads=1",
]


@pytest.fixture(scope="module")
def server():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crash_child"])
    return context


def launch(server, folder, how=None, *arguments):
    settings = [*SETTINGS, f"run.dir={folder}"]
    process = server.Process(target=crash_child.run, args=(settings, how, *arguments))
    process.start()
    process.join(timeout=120)
    assert process.exitcode is not None, "the child hangs"
    return process.exitcode


@pytest.fixture(scope="module")
def undisturbed(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert launch(server, folder) == 0
    moved = [entry for entry in read_ledger(RunFolder(folder).ledger_file).entries if entry.record.update is not None]
    assert len(moved) >= UPDATES // 2, "the reference run must move the weights, or this test shows nothing"
    return RunFolder(folder)


def assert_same_run(folder, undisturbed):
    run = RunFolder(folder)
    assert run.ledger_file.read_bytes() == undisturbed.ledger_file.read_bytes()
    assert json.loads(run.done_file.read_text()) == json.loads(undisturbed.done_file.read_text())
    assert (run.export / "model.safetensors").read_bytes() == (undisturbed.export / "model.safetensors").read_bytes()
    steps = [json.loads(line)["step"] for line in run.metrics_file.read_text().splitlines()]
    assert steps == list(range(1, UPDATES + 1))


@pytest.mark.parametrize("count", [1, 2, 5, 9])
@pytest.mark.parametrize("share", [0.02, 0.6])
def test_killed_inside_a_ledger_write(server, undisturbed, tmp_path, count, share):
    folder = tmp_path / "run"
    assert launch(server, folder, "kill_inside_ledger_write", count, share) == -9
    assert launch(server, folder) == 0
    assert_same_run(folder, undisturbed)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_killed_inside_a_snapshot(server, undisturbed, tmp_path, count):
    folder = tmp_path / "run"
    assert launch(server, folder, "kill_inside_snapshot", count) == -9
    assert launch(server, folder) == 0
    assert_same_run(folder, undisturbed)


def test_killed_at_random_instants_until_it_is_done(server, undisturbed, tmp_path):
    generator = random.Random(0)
    folder, kills = tmp_path / "run", 0
    for _ in range(40):
        if kills >= 9 or launch(server, folder, "kill_after", generator.uniform(0.1, 1.5)) == 0:
            break
        kills += 1
    assert kills >= 3
    assert launch(server, folder) == 0
    assert_same_run(folder, undisturbed)
