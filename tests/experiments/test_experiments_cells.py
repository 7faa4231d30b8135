"""Several runs in processes of their own: order, failures, interrupts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broadreach.experiments.cells import Cell, Job, environment, run_cells
from broadreach.runs.folder import RunFolder
from broadreach.types import UserError

SMALL = ["--set", "es.population=2", "--set", "train.batch=4", "--set", "sampling.temperature=0.8"]


class Heard:
    """A watcher that remembers."""

    def __init__(self):
        self.events = []
        self.endings = []

    def event(self, cell, job, event):
        self.events.append((cell.name, job.label, event["event"]))

    def started(self, cell, job):
        pass

    def ended(self, cell, failure):
        self.endings.append((cell.name, failure))


def test_a_failed_cell_is_listed_and_the_others_go_on(tmp_path):
    bad = Cell("bad", (Job("training", ("train", "no-such-recipe", "--json")), Job("evaluating", ("tasks", "list"))))
    good = Cell("good", (Job("listing", ("tasks", "list")),), after=("bad",))
    heard = Heard()
    failures = run_cells([good, bad], 2, tmp_path / "logs", heard)
    assert list(failures) == ["bad"]
    assert failures["bad"].startswith("training failed (exit code 2): no recipe or file named no-such-recipe")
    assert [name for name, _ in heard.endings] == ["bad", "good"]  # good waited, although it came first
    assert "nano-chain" in (tmp_path / "logs" / "good.txt").read_text()


def test_json_lines_reach_the_watcher(tmp_path):
    train = ("train", "demo", *SMALL, "--set", "train.updates=2", "--run", str(tmp_path / "run"), "--json")
    heard = Heard()
    assert run_cells([Cell("one", (Job("training", train),))], 1, tmp_path / "logs", heard) == {}
    assert [event for _, _, event in heard.events].count("update") == 2
    assert RunFolder(tmp_path / "run").is_done()


def test_cores_are_shared_out_unless_the_user_says_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert environment(2)["OMP_NUM_THREADS"] == "4" and environment(16)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment(2)["OMP_NUM_THREADS"] == "3"


def test_an_interrupted_sweep_stops_its_children_and_goes_on_later(tmp_path):
    command = [sys.executable, "-m", "broadreach", "sweep", "demo", "--grid", "es.sigma=0.005,0.01", "--jobs", "2"]
    command += ["--out", str(tmp_path), "--set", "eval.samples=2", "--set", "eval.problems=4"]
    long = [*command, *SMALL, "--set", "train.updates=500", "--set", "run.snapshot_every=5"]
    sweep = subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    runs = [RunFolder(tmp_path / f"sigma={sigma},seed=0") for sigma in ("0.005", "0.01")]
    try:
        wait_for(
            lambda: all(run.metrics_file.exists() and run.metrics_file.read_text().count("\n") > 1 for run in runs)
        )
    finally:
        sweep.send_signal(signal.SIGINT)
        _, errors = sweep.communicate(timeout=60)
    assert sweep.returncode == 130 and "Traceback" not in errors
    done = [run.metrics_file.read_text().count("\n") for run in runs]
    for run in runs:
        with run.locked():  # no child holds it any more
            assert not run.is_done()
    total = max(done) + 2
    again = subprocess.run([*command, *SMALL, "--set", f"train.updates={total}"], capture_output=True, text=True)
    assert again.returncode == 0, again.stdout + again.stderr
    rows = (tmp_path / "sweep.csv").read_text().splitlines()
    assert len(rows) == 3 and rows[0].startswith("es.sigma,seed,training_reward,pass_at_1")


def wait_for(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds} seconds")
        time.sleep(0.2)


def test_children_die_with_a_parent_that_is_killed(tmp_path):
    command = [sys.executable, "-m", "broadreach", "sweep", "demo", "--grid", "es.sigma=0.005,0.01", "--jobs", "2"]
    command += ["--out", str(tmp_path), *SMALL, "--set", "train.updates=5000"]
    sweep = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    runs = [RunFolder(tmp_path / f"sigma={sigma},seed=0") for sigma in ("0.005", "0.01")]
    children = []
    try:
        wait_for(lambda: all(run.metrics_file.exists() for run in runs))
        children = children_of(sweep.pid)
        for child in children:
            os.kill(child, signal.SIGSTOP)  # it cannot notice by itself that nobody reads its lines any more
        sweep.kill()
        sweep.wait()
        assert len(children) == 2
        wait_for(lambda: not any(alive(child) for child in children), seconds=5)
        for run in runs:
            wait_for(lambda run=run: free(run), seconds=5)  # the run can go on
            assert not run.is_done()
    finally:
        sweep.kill()
        for child in children:
            if alive(child):
                os.kill(child, signal.SIGKILL)


def test_a_child_of_a_parent_that_has_gone_does_not_begin():
    gone = subprocess.run(
        [sys.executable, "-m", "broadreach.experiments.child", "1", "tasks", "list"], capture_output=True, text=True
    )
    assert gone.returncode == 1 and gone.stdout == ""


def free(run):
    """Whether nobody holds a run folder; the threads of a killed process may hold it a moment longer than its first."""
    try:
        with run.locked():
            return True
    except UserError:
        return False


def children_of(pid):
    listed = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for line in listed for child in line]


def alive(pid):
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
