"""A run from the command line: train, resume, replay, eval, report, list."""

import json
import resource
import subprocess
import sys
import time

import pytest

from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import read_ledger
from broadreach.training.rebuild import rebuild

SMALL = [
    "es.population=4",
    "es.sigma=0.02",
    "train.batch=8",
    "train.updates=6",
    "sampling.temperature=0.8",
    "run.snapshot_every=4",
]
SETTINGS = [word for item in SMALL for word in ("--set", item)]


def broadreach(*arguments, check=True):
    command = [sys.executable, "-m", "broadreach", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=check)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "small"
    broadreach("train", "demo", "--run", folder, *SETTINGS)
    return RunFolder(folder)


def test_replay_gives_the_live_weights_at_every_step(run):
    entries = read_ledger(run.ledger_file).entries
    assert len(entries) == 6 and len({entry.digest for entry in entries}) >= 4  # most updates moved the weights
    for step, entry in enumerate(entries, start=1):
        assert digest(rebuild(run, step)[0]) == entry.digest


def test_replay_writes_a_plain_hugging_face_directory(run, tmp_path):
    out = broadreach("replay", run.path, "--step", 6, "--out", tmp_path / "model").stdout
    assert "6 digests checked" in out
    assert digest(load_centre(tmp_path / "model")) == read_ledger(run.ledger_file).entries[-1].digest
    assert digest(load_centre(run.export)) == digest(load_centre(tmp_path / "model"))


def test_eval_compares_before_and_after(run):
    out = broadreach("eval", run.path, "--samples", 4, "--problems", 6).stdout
    assert "Pass@1" in out and "Pass@4" in out and "paired" in out
    comparison = json.loads((run.evaluations / "comparison.json").read_text())
    assert comparison["problems"] == 6 and len(comparison["pass_at_k"]) == 4
    again = broadreach("eval", run.path, "--samples", 4, "--problems", 6).stdout
    assert again == out  # nothing is drawn twice


def test_report_of_the_run(run):
    page = run.path / "report" / "index.html"
    assert str(page) in broadreach("report", run.path).stdout
    assert "<svg" in page.read_text()


def test_runs_lists_it(run):
    out = broadreach("runs", run.path.parent).stdout
    assert "small" in out and "done" in out and "nano-chain" in out


def test_a_finished_run_says_so(run):
    assert "is finished" in broadreach("train", "--resume", run.path).stdout


def test_interrupt_and_resume_end_like_the_undisturbed_run(run, tmp_path):
    folder = tmp_path / "interrupted"
    command = [sys.executable, "-m", "broadreach", "train", "demo", "--run", str(folder), *SETTINGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for _ in range(1200):
            metrics = folder / "metrics.jsonl"
            if metrics.exists() and metrics.read_text().count("\n") >= 2:
                break
            time.sleep(0.05)
        process.send_signal(2)
        output = process.communicate(timeout=60)[0]
    assert process.returncode == 130 and f"broadreach train --resume {folder}" in output
    assert "resuming after update" in broadreach("train", "--resume", folder).stdout
    assert (folder / "ledger.jsonl").read_bytes() == run.ledger_file.read_bytes()


def test_json_mode_is_json(tmp_path):
    out = broadreach("train", "demo", "--run", tmp_path / "r", "--json", *SETTINGS, "--set", "train.updates=1").stdout
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert "start" in events and "update" in events


def test_dry_run_counts_and_trains_nothing(tmp_path):
    out = broadreach("train", "demo", "--run", tmp_path / "r", "--dry-run").stdout
    assert "forward passes" in out and "rounded away" in out and 'name = "nano-chain"' in out
    assert not (tmp_path / "r").exists()


def test_help_answers_in_under_a_second():
    broadreach("--help")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    broadreach("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0  # processor time: CI is shared


def test_doctor():
    assert "torch" in broadreach("doctor").stdout
