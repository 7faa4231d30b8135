"""What a program may fill and how long it may run: memory disks of a normal user, and the deadline of a verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest

from broadreach.verify import GradingPool
from broadreach.verify import sandbox as sandbox_module
from broadreach.verify.sandbox import Limits, Sandbox

NEEDS = pytest.mark.needs_bubblewrap
FILL = """
for folder in / /dev /dev/shm /tmp /opt; do
  written=0
  for number in $(seq 64); do
    { head -c 1048576 /dev/zero > $folder/$number; } 2>/dev/null && written=$((written + 1))
  done
  echo $folder $written
done
"""


@NEEDS
def test_a_normal_user_fills_no_memory_disk_but_the_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "_prefix_under_usr", lambda: True)
    line = Sandbox(shutil.which("bwrap"), None).command([], Limits().temporary_bytes)
    line = [*line[: line.index("--")], "--", "bash", "-c", FILL]
    if os.geteuid() == 0:
        line = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *line]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        pytest.skip(f"user namespaces are refused here ({done.stderr.strip()[-100:]})")
    written = {folder: int(count) for folder, count in (row.split() for row in done.stdout.splitlines())}
    assert written == {"/": 0, "/dev": 0, "/dev/shm": 1, "/tmp": 16, "/opt": 0}


@NEEDS
def test_the_deadline_of_the_pool_holds_for_programs() -> None:
    with GradingPool(workers=1, deadline=1.0) as pool:
        started = time.monotonic()
        score = pool.grade_many("code", [("```python\nwhile True: pass\n```", "", {"tests": ["assert f() == 1"]})])[0]
        assert time.monotonic() - started < 5
        assert (score.timed_out, score.correct) == (True, False)
        assert pool.timeouts == 1
