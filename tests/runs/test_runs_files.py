"""Small files are written whole, and a kill between writing and renaming leaves nothing behind for long."""

import os
import subprocess

from broadreach.runs.files import write_atomically


def test_what_a_killed_writer_left_aside_is_removed_and_nothing_else(tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    stale, alive = tmp_path / f".a.json.{gone.pid}.tmp", tmp_path / f".a.json.{os.getppid()}.tmp"
    others = [tmp_path / f".b.json.{gone.pid}.tmp", tmp_path / ".a.json", tmp_path / f"a.json.{gone.pid}.tmp"]
    for path in (stale, alive, *others):
        path.write_text("half")
    write_atomically(tmp_path / "a.json", "whole")
    assert (tmp_path / "a.json").read_text() == "whole"
    assert not stale.exists()
    assert alive.exists() and all(path.exists() for path in others)
