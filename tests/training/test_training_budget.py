"""One account for every run, and where to compare runs so that they have spent the same."""

import json

import pytest

from broadreach.config import load_config, to_toml
from broadreach.runs.budget import Budget, match, total
from broadreach.runs.folder import RunFolder
from broadreach.training.budget import budget_of, write_budget
from broadreach.training.stages import Stage, write_stages
from broadreach.types import UserError


def es_line(step, seconds=2.0):
    """An update of 8 members on 4 problems."""
    return {
        "step": step,
        "responses": 32,
        "tokens": 320,
        "prompt_tokens": 960,
        "seconds": {"generation": seconds - 0.5, "other": 0.5, "total": seconds},
        "peak_memory_mb": 100.0 + step,
    }


def grpo_line(step):
    """An update of 2 responses to 4 problems."""
    positions = {"forward_positions": 1280, "backward_positions": 320}
    return {**es_line(step, 4.0), "responses": 8, "tokens": 80, "prompt_tokens": 240, **positions}


ES = [es_line(step) for step in range(1, 6)]
GRPO = [grpo_line(step) for step in range(1, 11)]


def test_the_account_is_the_sum_of_the_lines():
    assert total(ES) == Budget(
        updates=5,
        responses=160,
        tokens=1600,
        prompt_tokens=4800,
        forward_positions=6400,
        backward_positions=0,
        seconds={"generation": 7.5, "other": 2.5, "total": 10.0},
        peak_memory_mb=105.0,
    )
    assert total(GRPO).forward_positions == 12800 and total(GRPO).backward_positions == 3200
    assert total(ES) + total([]) == total(ES) and (total(ES) + total(GRPO)).peak_memory_mb == 110.0


@pytest.mark.parametrize(
    ("matching", "updates", "amount"),
    [("updates", (5, 5), 5), ("responses", (2, 10), 80), ("tokens", (2, 10), 800), ("seconds", (5, 2), 10)],
)
def test_each_matching_stops_both_at_what_the_cheaper_one_spent(matching, updates, amount):
    found = match([ES, GRPO], matching)
    assert found.updates == updates and found.amount == amount
    assert all(budget.spent(found.matching) <= amount for budget in found.budgets)
    sentence = found.sentence(["es", "grpo"])
    assert f"matched by {matching}" in sentence and f"grpo at update {updates[1]}" in sentence


def test_an_unknown_matching_or_an_empty_run_is_refused():
    with pytest.raises(UserError, match="choose one of updates, responses, tokens, seconds"):
        match([ES, GRPO], "flops")
    with pytest.raises(UserError, match="at least one finished update"):
        match([ES, []], "updates")


def test_a_run_and_its_stages_are_read_from_files(tmp_path):
    run = RunFolder(tmp_path)
    run.config_file.write_text(to_toml(load_config()))
    run.metrics_file.write_text("".join(json.dumps(line) + "\n" for line in ES) + '{"step": 6, "resp')
    assert budget_of(run) == total(ES)
    stages = [Stage(1, "es", "stage-1-es", 5), Stage(2, "grpo", "stage-2-grpo", 10), Stage(3, "es", "stage-3-es", 5)]
    write_stages(run, stages)
    for stage, lines in zip(stages[:2], (ES, GRPO), strict=True):
        stage.run(run).path.mkdir()
        stage.run(run).metrics_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert budget_of(run) == total(ES) + total(GRPO)
    write_budget(run)
    assert json.loads((tmp_path / "budget.json").read_text())["responses"] == 240
