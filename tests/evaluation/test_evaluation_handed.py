"""Every section of the handed metrics.json (cases/README.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broadreach.analysis.diversity import (
    js_success,
    population_gain,
    population_success,
    single_policy_success,
    weighted_gain,
)
from broadreach.analysis.estimator import coupling, kappa
from broadreach.evaluation.metrics import maj_at_k, pass_at_k, pass_curve, plurality, task_average
from broadreach.evaluation.statistics import Interval, bootstrap, paired_bootstrap
from broadreach.verify.grading import grade

CASES = Path(os.environ.get("BROADREACH_CASES", Path(__file__).parents[2] / "../shared/cases/handed")) / "metrics.json"
SECTIONS: dict[str, list[dict[str, Any]]] = json.loads(CASES.read_text())["sections"] if CASES.exists() else {}
Case = dict[str, Any]


def every(check: Callable[[Case], None], *sections: str) -> Callable[[], Iterator[Any]]:
    return pytest.mark.parametrize(
        "case", [pytest.param(case, id=case["id"]) for name in sections for case in SECTIONS.get(name, [])]
    )(check)


@pytest.mark.skipif(not SECTIONS, reason=f"{CASES} is not there (set BROADREACH_CASES)")
def test_no_section_is_left_out() -> None:
    assert set(SECTIONS) == {
        *("pass_at_k", "pass_at_k_wrong_estimators", "pass_at_k_errors", "dataset", "maj_at_k", "maj_at_k_errors"),
        *("bootstrap", "population", "population_errors", "covariance", "covariance_errors"),
        *("kappa_pair", "kappa_pair_errors"),
    }


def check_pass(case: Case) -> None:
    value = pass_at_k(**case["input"])
    assert value == case["expected"]["float"] == float(Fraction(case["expected"]["exact"]))
    assert value != case.get("not_equal_to")


def check_pass_error(case: Case) -> None:
    with pytest.raises(ValueError):
        pass_at_k(**case["input"])


def check_dataset(case: Case) -> None:
    n = case["input"]["n"]
    curve = pass_curve([[1] * c + [0] * (n - c) for c in case["input"]["right_per_problem"]])
    for k, expected in case["expected"]["pass_at_k"].items():
        assert task_average(curve[:, int(k) - 1]) == pytest.approx(expected["float"], rel=0, abs=1e-15)


def check_vote(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    if case["kind"] == "maj_raw":
        keys, correct = _graded(given)
        groups: dict[str, list[int]] = {}
        for index, key in enumerate(keys):
            groups.setdefault(str(key), []).append(index)
        assert sorted(groups.values()) == sorted(expected["same_key_groups"])
    else:
        keys = given["keys"]
        correct = [key == given["gold"] for key in keys]
    vote = plurality(keys, given["k"])
    assert (vote.first_index, vote.votes) == (expected["winner_first_index"], expected["votes"])
    assert maj_at_k(keys, correct, given["k"]) == float(expected["correct"])
    if "winner" in expected:
        assert vote.winner == expected["winner"]


def _graded(given: Case) -> tuple[list[str | None], list[bool]]:
    wrap = {"answer_tag": "<answer>{}</answer>"}.get(given["task"], "\\boxed{{{}}}")
    options = {letter: f"option {letter}" for letter in "ABCD"}
    data = {"options": options} if given["task"] == "choice" else {}
    scores = [grade(given["task"], wrap.format(p), given["gold"], data) for p in given["payloads"]]
    return [score.answer_key for score in scores], [score.correct for score in scores]


def check_vote_error(case: Case) -> None:
    given = case["input"]
    with pytest.raises(ValueError):
        maj_at_k(given["keys"], [False] * len(given["keys"]), given["k"])


def check_bootstrap(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    options = {"draws": given["draws"], "level": given["level"]}
    if expected == "error":
        with pytest.raises(ValueError):
            bootstrap(given["values"], **options)
        return
    for seed in given["seeds"]:
        interval = _interval(given, seed, options)
        assert interval == _interval(given, seed, options)
        mean = expected.get("mean_difference", expected.get("mean", {}))
        target = mean["float"] if isinstance(mean, dict) else mean
        assert interval.value == pytest.approx(target, rel=0, abs=1e-9)
        ends = expected.get("interval", expected.get("exact_quantiles"))
        if ends is not None:
            assert [interval.low, interval.high] == pytest.approx(ends, rel=0, abs=expected["tolerance"] + 1e-12)
        else:
            half = (interval.high - interval.low) / 2
            assert expected["half_width_at_least"] <= half <= expected["half_width_at_most"]


def _interval(given: Case, seed: int, options: Case) -> Interval:
    if "b" in given:
        b = np.array(given["b"])
        return paired_bootstrap(b + given["a_minus_b_constant"], b, seed=seed, **options)
    if "clusters" in given:
        verdicts = np.zeros((given["clusters"], given["rows_per_cluster"]))
        verdicts[:10] = 1
        return bootstrap(verdicts.mean(axis=1), seed=seed, **options)
    values = given.get("values") or [1.0] * given["per_problem"]["ones"] + [0.0] * given["per_problem"]["zeros"]
    return bootstrap(values, seed=seed, **options)


def check_population(case: Case) -> None:
    p = [float(Fraction(rate)) for rate in case["input"]["p"]]
    expected, tolerance = case["expected"], case["tolerance"]
    assert js_success(p) == pytest.approx(expected["js_succ_nats"], rel=0, abs=tolerance)
    assert js_success(p) >= 0
    assert population_success(p) == pytest.approx(expected["p_pop"]["float"], rel=0, abs=tolerance)
    assert single_policy_success(p) == pytest.approx(expected["p_same"]["float"], rel=0, abs=tolerance)
    gain = expected["p_pop_minus_p_same"]["float"]
    assert population_gain(p) == pytest.approx(gain, rel=1e-6, abs=1e-15)
    if "exact" in expected["p_pop_minus_p_same"] and gain == 0:
        assert population_gain(p) == 0 == js_success(p)


def check_population_error(case: Case) -> None:
    for function in (js_success, population_success, single_policy_success, population_gain):
        with pytest.raises(ValueError):
            function(case["input"]["p"])


def check_covariance(case: Case) -> None:
    w, p = ([float(Fraction(v)) for v in case["input"][name]] for name in "wp")
    assert weighted_gain(w, p) == pytest.approx(case["expected"]["n_times_cov"]["float"], rel=0, abs=1e-12)
    assert float(np.dot(w, p)) - np.mean(p) == pytest.approx(weighted_gain(w, p), rel=0, abs=1e-12)


def check_covariance_error(case: Case) -> None:
    with pytest.raises(ValueError):
        weighted_gain(*([float(Fraction(v)) for v in case["input"][name]] for name in "wp"))


def check_kappa(case: Case) -> None:
    given, expected = case["input"], case["expected"]
    measured = coupling(given["x_plus"], given["x_minus"])
    for name, value in (
        ("var_difference", measured.var_difference),
        ("var_plus", measured.var_plus),
        ("var_minus", measured.var_other),
        ("cov", measured.covariance),
        ("kappa_pair", kappa(given["x_plus"], given["x_minus"])),
    ):
        assert value == pytest.approx(expected[name]["float"], rel=0, abs=1e-12)
    assert measured.subtraction_helps == expected["subtraction_helps"] == (measured.kappa < 1)


def check_kappa_error(case: Case) -> None:
    with pytest.raises(ValueError):
        kappa(case["input"]["x_plus"], case["input"]["x_minus"])


test_pass_at_k = every(check_pass, "pass_at_k", "pass_at_k_wrong_estimators")
test_pass_at_k_errors = every(check_pass_error, "pass_at_k_errors")
test_dataset = every(check_dataset, "dataset")
test_maj_at_k = every(check_vote, "maj_at_k")
test_maj_at_k_errors = every(check_vote_error, "maj_at_k_errors")
test_bootstrap = every(check_bootstrap, "bootstrap")
test_population = every(check_population, "population")
test_population_errors = every(check_population_error, "population_errors")
test_covariance = every(check_covariance, "covariance")
test_covariance_errors = every(check_covariance_error, "covariance_errors")
test_kappa = every(check_kappa, "kappa_pair")
test_kappa_errors = every(check_kappa_error, "kappa_pair_errors")
