"""What the README shows is what runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from broadreach.config import build_config

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_python_example_runs_as_written(tmp_path):
    (example,) = blocks("python")
    answer = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "change in Pass@1" in answer.stdout
    assert (tmp_path / "runs/from-python/export/model.safetensors").exists()


def test_the_python_example_has_ten_lines():
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 10


def test_the_toml_example_is_valid():
    (example,) = blocks("toml")
    assert build_config(tomllib.loads(example)).task.name == "jsonl"


def test_every_linked_file_exists():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / target).exists(), target
