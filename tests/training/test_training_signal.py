"""A run without a signal says so at once and stops asking for patience; one without trouble says what it does."""

import sys
from pathlib import Path

import pytest

from broadreach.config import load_config
from broadreach.runs.folder import RunFolder
from broadreach.training.es import train
from broadreach.types import UserError

sys.path.insert(0, str(Path(__file__).parent))
from listeners import Notes

SETTINGS = ["model.path=nano", "es.population=3", "train.batch=4", "sampling.max_new_tokens=8", "train.updates=5"]


def nothing(prompts, completions, **columns):
    """A reward function that rewards nothing."""
    return [0.0 for _ in completions]


def only_none(prompts, completions, **columns):
    """A reward function that skips every response."""
    return [None for _ in completions]


def not_a_number(prompts, completions, **columns):
    return [float("nan") for _ in completions]


def test_equal_rewards_stop_the_run_with_advice(tmp_path):
    said = Notes()
    settings = [*SETTINGS, f"task.reward={__name__}:nothing", f"run.dir={tmp_path}/r"]
    with pytest.raises(UserError, match=r"stopped: 3 updates .* equal rewards .*task\.shots=2"):
        train(load_config([], settings), RunFolder(tmp_path / "r"), said)
    assert len(said.updates) == 3 and not any(line["updated"] for line in said.updates)
    assert "all 3 members scored 0.000" in said.warnings[-1]


def test_a_reward_function_that_skips_everything_is_named(tmp_path):
    said = Notes()
    settings = [*SETTINGS, f"task.reward={__name__}:only_none", f"run.dir={tmp_path}/r"]
    with pytest.raises(UserError, match="equal rewards"):
        train(load_config([], settings), RunFolder(tmp_path / "r"), said)
    assert "returned None for every response of the base" in said.warnings[0]
    assert "returned None for all 12 responses" in said.warnings[-1]
    assert not any("scored 0.000" in warning or "required form" in warning for warning in said.warnings)


def test_a_nan_reward_names_the_problem(tmp_path):
    settings = [*SETTINGS, f"task.reward={__name__}:not_a_number", f"run.dir={tmp_path}/r"]
    with pytest.raises(UserError, match=r"returned nan for problem nano-chain/train/\d+"):
        train(load_config([], settings), RunFolder(tmp_path / "r"), Notes())
