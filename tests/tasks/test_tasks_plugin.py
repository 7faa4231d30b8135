"""A task from someone else's package, found through its entry point (examples/task_package)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "examples" / "task_package"

USE = """
from broadreach.config import TaskSettings
from broadreach.tasks.check import check_task
from broadreach.tasks.registry import get_task, list_tasks
from broadreach.types import UserError

info = {info.name: info for info in list_tasks()}["letters"]
assert info.kind == "package broadreach-letters", info
task = get_task(TaskSettings(name="letters", options={"words": 20}, shots=1))
assert check_task(task, "test").passed
assert len(task.problems("train")) == 20
for settings, message in (
    (TaskSettings(name="letters", options={"word": 1}), "did you mean words?"),
    (TaskSettings(name="leters"), "did you mean letters?"),
    (TaskSettings(name="letters", shots=2), "has 1 worked examples"),
    (TaskSettings(name="broken_letters"), "cannot import no_such_module:make"),
):
    try:
        get_task(settings)
    except UserError as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
print("used")
"""


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_an_installed_package_brings_its_task(tmp_path: Path) -> None:
    target = tmp_path / "site"
    isolation = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        *isolation,
        "--target",
        str(target),
        str(PACKAGE),
    ]
    installed = subprocess.run(pip, capture_output=True, text=True, timeout=120, check=False)
    assert installed.returncode == 0, installed.stderr
    broken = target / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[broadreach.tasks]\nbroken_letters = no_such_module:make\n")
    environment = {**os.environ, "PYTHONPATH": str(target)}
    used = subprocess.run(
        [sys.executable, "-c", USE], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert used.returncode == 0, used.stderr
    assert used.stdout.strip() == "used"
