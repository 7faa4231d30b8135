"""What a study and a sweep will run, before anything is trained."""

from itertools import pairwise
from pathlib import Path

import pytest

from broadreach.experiments.study import StudyPlan, study_cells
from broadreach.experiments.sweep import SweepPlan, parse_grid, sweep_cells
from broadreach.types import UserError


def plan(**changes):
    values = {
        "settings": ("demo",),
        "overrides": (),
        "methods": ("es", "grpo", "es->grpo", "grpo->es"),
        "seeds": (0, 1),
        "match": "updates",
        "suite": "nano",
        "baselines": True,
        "folder": Path("runs/study"),
    }
    return StudyPlan(**{**values, **changes})


def settings(cell):
    """The --set values of a cell's training."""
    arguments = cell.jobs[0].arguments
    return dict(after.split("=", 1) for word, after in pairwise(arguments) if word == "--set")


def test_every_method_makes_the_updates_of_es():
    cells = {cell.name: cell for cell in study_cells(plan())}
    assert len(cells) == 8
    assert {settings(cell)["train.updates"] for cell in cells.values()} == {"40"}
    assert settings(cells["grpo-es-seed1"])["train.stages"] == '"grpo->es"'
    assert settings(cells["grpo-es-seed1"])["seed"] == "1"


def test_matched_responses_give_grpo_four_times_the_updates():
    cells = {cell.name: settings(cell) for cell in study_cells(plan(match="responses", seeds=(0,)))}
    updates = {name: values["train.updates"] for name, values in cells.items()}
    # N = 32 members against G = 8: 1,024 responses an update against 256
    assert updates == {"es-seed0": "40", "grpo-seed0": "160", "es-grpo-seed0": "40", "grpo-es-seed0": "160"}
    assert cells["es-grpo-seed0"]["train.stage_split"] == "responses"


def test_compositions_wait_for_the_runs_whose_halves_they_take_over():
    cells = {cell.name: cell for cell in study_cells(plan(methods=("es->grpo", "es", "grpo"), seeds=(3,)))}
    assert set(cells["es-grpo-seed3"].after) == {"es-seed3", "grpo-seed3"}
    assert cells["es-seed3"].after == ()


def test_the_base_is_put_to_its_baselines_once():
    jobs = [(cell.name, job.label) for cell in study_cells(plan()) for job in cell.jobs]
    assert [name for name, label in jobs if label == "baselines"] == ["es-seed0"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"match": "tokens"}, "choose updates or responses"),
        ({"methods": ("es", "ppo")}, "unknown method ppo"),
        ({"methods": ("es", "es")}, "a method is named twice"),
        ({"seeds": (1, 1)}, "a seed is named twice"),
        ({"overrides": ("es.sgima=1",)}, "did you mean es.sigma?"),
    ],
)
def test_bad_studies_are_refused_before_training(changes, said):
    with pytest.raises(UserError, match=said):
        study_cells(plan(**changes))


def sweep_plan(*grid):
    return SweepPlan(("demo",), (), parse_grid(grid), (0, 1), Path("runs/sweep"))


def test_a_sweep_is_the_product_of_its_grid_and_seeds():
    names = [cell.name for cell in sweep_cells(sweep_plan("es.sigma=0.01,0.02", "es.alpha=0.001"))]
    assert names == [f"sigma={sigma},alpha=0.001,seed={seed}" for sigma in ("0.01", "0.02") for seed in (0, 1)]


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        (["es.sigma"], "write it as section.key=value,value"),
        (["es.sigma=1,1"], "named twice"),
        (["es.sigma=1", "es.sigma=2"], "named twice"),
        (["es.sigma=-1"], "es.sigma"),
        ([], "at least one --grid"),
    ],
)
def test_bad_grids_are_refused_before_training(grid, said):
    with pytest.raises(UserError, match=said):
        sweep_cells(sweep_plan(*grid))


def test_an_unknown_suite_is_refused_before_anything_is_trained():
    with pytest.raises(UserError, match="unknown suite 'hrad'; did you mean hard"):
        study_cells(plan(suite="hrad"))
