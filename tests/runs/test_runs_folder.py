"""Run folders: locks, changed settings, full disks."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from broadreach.config import load_config
from broadreach.runs.folder import RunFolder, changed_settings, find_runs
from broadreach.types import UserError


def test_a_second_process_is_refused_and_told_who_holds_the_folder(tmp_path):
    code = (
        "from broadreach.runs.folder import RunFolder\nfrom broadreach.types import UserError\n"
        f"try:\n with RunFolder({str(tmp_path)!r}).locked(): print('got it')\nexcept UserError as e: print(e)"
    )
    with RunFolder(tmp_path).locked():
        second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert f"in use by process {os.getpid()}" in second.stdout
    third = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert third.stdout.strip() == "got it"


def _hold_and_die(path):
    with RunFolder(path).locked():
        os.kill(os.getpid(), 9)


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_hold_and_die, args=(tmp_path,))
    process.start()
    process.join()
    with RunFolder(tmp_path).locked():
        pass


def test_resuming_with_changed_settings_lists_the_keys(tmp_path):
    run = RunFolder(tmp_path / "r")
    with run.locked():
        assert run.claim(load_config([], ["es.sigma=0.1"])) is False
        assert run.claim(load_config([], ["es.sigma=0.1"])) is True
        with pytest.raises(UserError, match=r"es\.sigma: 0\.1 -> 0\.2; train\.batch: 64 -> 8"):
            run.claim(load_config([], ["es.sigma=0.2", "train.batch=8"]))


def test_settings_that_change_nothing_computed_may_differ():
    old = load_config([], ["train.updates=10"])
    assert changed_settings(old, load_config([], ["train.updates=20", "run.snapshot_every=5", "eval.samples=4"])) == []
    decaying = load_config([], ["train.updates=10", "es.alpha_schedule=cosine"])
    longer = load_config([], ["train.updates=20", "es.alpha_schedule=cosine"])
    assert changed_settings(decaying, longer) == ["train.updates: 10 -> 20"]


def test_a_folder_that_is_no_run_says_so(tmp_path):
    with pytest.raises(UserError, match="is not a run folder"):
        RunFolder(tmp_path).config()


def test_find_runs(tmp_path):
    for name in ("a", "deep/b"):
        run = RunFolder(tmp_path / name)
        with run.locked():
            run.claim(load_config())
    assert {run.path.name for run in find_runs(tmp_path)} == {"a", "b"}
