"""Rollouts that survive a kill, and the theory's values on verdicts of known populations."""

import json

import numpy as np
import pytest

from broadreach.analysis.diversity_measure import StepVerdicts, measure_success
from broadreach.analysis.diversity_rollout import Asked, roll
from broadreach.analysis.diversity_step import StepPlan, ledger_weights, roll_step
from broadreach.analysis.diversity_store import UnitStore
from broadreach.analysis.theory import coverage, gate_gain, js_rates, local_gain, slack
from broadreach.config import TaskSettings
from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.models.locate import locate
from broadreach.models.weights import load_centre, load_tokenizer
from broadreach.noise.members import population_members
from broadreach.tasks.grading import Grader
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import render
from broadreach.types import CENTRE_MEMBER, Perturbation, Sampling, UserError

DIRECTORY = locate("nano")


@pytest.fixture(scope="module")
def asked():
    task, tokenizer = get_task(TaskSettings(name="nano-chain")), load_tokenizer(DIRECTORY)
    problems = task.problems("test")[:3]
    engine = PopulationEngine(DIRECTORY)
    engine.load(load_centre(DIRECTORY))
    with Grader(task) as grader:
        yield Asked(engine, grader, problems, {p.id: render(tokenizer, task, p) for p in problems})


def draw(asked, path, count=4, seed=3):
    units = {f"member-{m.index}": m for m in population_members(count, "one_point")}
    with UnitStore(path, {"seed": seed}) as store:
        return roll(asked, store, units, Perturbation(0, 1, 0.02), Sampling(1.0, 16, seed=seed), 4)


def test_a_killed_analysis_goes_on_and_ends_with_the_same_bytes(asked, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    draw(asked, whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5  # the header and four members
    cut.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    found = draw(asked, cut)
    assert cut.read_bytes() == whole.read_bytes()
    assert found["member-0"].rewards.shape == (3, 4) and len(found["member-0"].tokens[2]) == 4
    assert {0.0, 0.1, 1.0} >= set(np.unique(found["member-3"].rewards))
    assert draw(Asked(None, None, asked.problems, asked.prompts), cut).keys() == found.keys()  # nothing is drawn twice


def test_members_differ_and_equal_the_one_at_a_time_engine(asked, tmp_path):
    found = draw(asked, tmp_path / "a.jsonl")
    assert len({rollout.tokens for rollout in found.values()}) == 4
    engine = HfEngine(DIRECTORY)
    engine.load(load_centre(DIRECTORY))
    alone = draw(Asked(engine, asked.grader, asked.problems, asked.prompts), tmp_path / "b.jsonl")
    assert all(alone[name].tokens == rollout.tokens for name, rollout in found.items())


def test_a_store_of_other_settings_is_refused_by_name(asked, tmp_path):
    draw(asked, tmp_path / "a.jsonl")
    with pytest.raises(UserError, match="seed = 3, now it is 4"):
        draw(asked, tmp_path / "a.jsonl", seed=4)
    (tmp_path / "a.jsonl").write_text('{"other": 1}\n')
    with pytest.raises(UserError, match="not a store of this analysis"):
        draw(asked, tmp_path / "a.jsonl")
    with UnitStore(tmp_path / "b.jsonl", {}), pytest.raises(UserError, match="another process"):
        UnitStore(tmp_path / "b.jsonl", {}).__enter__()


def test_centre_and_next_centre_are_drawn_independently_of_the_members(asked, tmp_path):
    members = (CENTRE_MEMBER, *population_members(2, "one_point")[1:])
    plan = StepPlan(members, Perturbation(0, 1, 0.02), 4, 4, Sampling(1.0, 16, seed=3))
    centre = load_centre(DIRECTORY)
    with UnitStore(tmp_path / "a.jsonl", {}) as store:
        found = roll_step(asked, store, plan, centre, lambda: centre)
    drawn = {found.members[0].tokens, found.centre.tokens, found.updated.tokens}
    assert len(drawn) == 3  # the same weights three times, three different draws
    assert json.loads((tmp_path / "a.jsonl").read_bytes().splitlines()[-1])["unit"] == "updated"
    verdicts = found.verdicts(np.array([0.5, 0.5]), "")
    assert verdicts.members.shape == (2, 3, 4) and verdicts.centre.shape == (3, 4)


def verdicts(p, samples, rng):
    return rng.random((*p.shape, samples)) < p[..., None]


@pytest.fixture(scope="module")
def known():
    """800 prompts, 6 members, many samples; theta+ is the weighted mixture itself."""
    rng = np.random.default_rng(0)
    mean = rng.uniform(0.1, 0.6, (800, 1))
    p = np.clip(mean + 0.15 * rng.standard_normal((800, 6)), 0, 1)
    w = np.array([0.4, 0.3, 0.1, 0.1, 0.1, 0.0])
    p[:, 0] = np.clip(p[:, 0] + 0.2, 0, 1)
    centre, after = p.mean(axis=1) * 0.8, p @ w
    found = StepVerdicts(
        verdicts(p.T, 16, rng), verdicts(centre, 256, rng), verdicts(after, 256, rng), w, "known weights"
    )
    return p, w, centre, measure_success(found, (1, 2), 2.0)


def test_values_are_those_of_the_population_within_their_intervals(known):
    p, w, centre, measured = known
    values = {value.name: value.interval for value in measured.values}
    m_2 = coverage(p @ w, 2) - coverage(centre, 2)
    truth = {
        "mean_success": p.mean(),
        "js_succ": js_rates(p).mean(),
        "p_pop": (1 - (1 - p).prod(axis=1)).mean(),
        "p_same": (1 - (1 - p.mean(axis=1)) ** 6).mean(),
        "population_gain": ((1 - p.mean(axis=1)) ** 6 - (1 - p).prod(axis=1)).mean(),
        "population_gain_local": local_gain(p.mean(axis=1), js_rates(p), 6).mean(),
        "gate_gain": gate_gain(p, 2.0).mean(),
        "weighted_gain": (p @ w - p.mean(axis=1)).mean(),
        "covariance_w_p": (p @ w - p.mean(axis=1)).mean() / 6,
        "centre_success": centre.mean(),
        "m_1": (p @ w - centre).mean(),
        "m_2": m_2.mean(),
    }
    for name, expected in truth.items():
        interval = values[name]
        width = interval.high - interval.low
        assert abs(interval.value - expected) < 0.7 * width, name
    assert values["js_succ_plug_in"].value > values["js_succ"].high


def test_different_members_are_told_from_equal_ones(known):
    nulls = known[3].nulls
    assert nulls["js_succ"].p_value < 0.01 and nulls["population_gain"].p_value < 0.01
    assert nulls["js_succ"].mean == pytest.approx((1 - 1 / 6) / 32, rel=0.25)


def test_condition_13_holds_where_the_update_is_the_mixture(known):
    measured = known[3]
    values = {value.name: value.interval for value in measured.values}
    assert values["eps_succ"].value == pytest.approx(1 / (2 * 256) + 0.004, abs=0.006)
    assert values["slack_2"].value == pytest.approx(float(slack(values["eps_succ"].value, 2)), rel=1e-9)
    assert values["margin_1"].value == pytest.approx(values["m_1"].value - values["slack_1"].value, rel=1e-9)
    assert measured.condition["1"]["held"] and measured.condition["1"]["certain"]
    assert values["coverage_1_change"].value > values["m_1"].value - values["slack_1"].value  # what (12) promises


def test_without_a_following_update_the_condition_is_undefined():
    rng = np.random.default_rng(1)
    p = rng.uniform(0, 1, (20, 4))
    found = StepVerdicts(verdicts(p.T, 4, rng), verdicts(p[:, 0], 8, rng), None, np.full(4, 0.25), "equal")
    measured = measure_success(found, (1, 8), 1.0)
    names = {value.name for value in measured.values}
    assert measured.condition["8"]["held"] is None and "eps_succ" not in names and "m_8" in names


def test_ledger_weights_are_those_of_the_first_members():
    members = population_members(3, "one_point")
    np.testing.assert_allclose(ledger_weights(members, [0.1, 0.3, 0.2, 9.0]), [0, 2 / 3, 1 / 3])
    with pytest.raises(ValueError, match="no reward"):
        ledger_weights(members, [0.1])
