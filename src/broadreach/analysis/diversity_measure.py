"""Every quantity of the theory from one step's verdicts (method.md section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_estimate import PermutationNull, corrected_js, jackknifed, permutation_null
from broadreach.analysis.diversity_values import Value, function_interval, mean_values
from broadreach.analysis.theory import (
    bernoulli_kl,
    coverage,
    gain_rates,
    gate_gain,
    js_rates,
    local_gain,
    local_gate_gain,
    slack,
)
from broadreach.evaluation.metrics import pass_at_k

Floats = NDArray[np.float64]
Verdicts = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StepVerdicts:
    """What one step's population, its centre and the next centre answered to the same prompts."""

    members: Verdicts
    """[members, prompts, samples]."""
    centre: Verdicts
    """[prompts, samples]: pi_theta."""
    updated: Verdicts | None
    """[prompts, samples]: pi_theta+, the centre after this population's update; None where there is none."""
    weights: Floats
    """[members]: normalised, non-negative."""
    weights_from: str
    """Where they come from, in words."""


@dataclass(frozen=True, slots=True)
class StepMeasures:
    """The values of one step."""

    values: tuple[Value, ...]
    nulls: dict[str, PermutationNull]
    condition: dict[str, Any]
    """Per K: whether condition (13) held."""


def measure_success(found: StepVerdicts, ks: Sequence[int], gate: float) -> StepMeasures:
    """All quantities that need verdicts only, with bootstrap intervals over prompts.

    `gate` is lambda of (27); `ks` are at most the centre's samples. Jackknifed values may fall below zero by chance.
    """
    counts = found.members.sum(axis=2).T.astype(np.int64)
    samples = found.members.shape[2]
    values = mean_values(_success_columns(counts, samples, gate) | _weight_columns(found, counts, samples))
    condition: dict[str, Any] = {}
    for k in ks:
        more, held = _condition(found, counts, samples, k)
        values += more
        condition[str(k)] = held
    nulls = {
        "js_succ": permutation_null(js_rates, counts, samples),
        "population_gain": permutation_null(gain_rates, counts, samples),
    }
    return StepMeasures(tuple(values), nulls, condition)


def _success_columns(counts: NDArray[np.int64], samples: int, gate: float) -> dict[str, tuple[Floats, str, str]]:
    rates = counts / samples
    members = counts.shape[1]
    population = 1 - (1 - rates).prod(axis=1)
    gain = jackknifed(gain_rates, counts, samples)

    def predicted_gain(p: Floats) -> Floats:
        return local_gain(p.mean(axis=-1), js_rates(p), members)

    def predicted_gate(p: Floats) -> Floats:
        return local_gate_gain(p.mean(axis=-1), js_rates(p), gate)

    corrected = "jackknifed over responses"
    return {
        "mean_success": (rates.mean(axis=1), "", "mean over members"),
        "js_succ_plug_in": (js_rates(rates), "10", f"biased up by about {(1 - 1 / members) / (2 * samples):.4f}"),
        "js_succ": (corrected_js(counts, samples), "10", corrected),
        "p_pop": (population, "11", f"one try of each of {members} members"),
        "p_same": (population - gain, "11", f"{members} tries of one policy of the mean rate; {corrected}"),
        "population_gain": (gain, "11", f"P_pop - P_same; {corrected}"),
        "population_gain_local": (jackknifed(predicted_gain, counts, samples), "25", corrected),
        "gate_gain": (
            jackknifed(lambda p: gate_gain(p, gate), counts, samples),
            "27-30",
            f"oracle gate, lambda = {gate:g}; {corrected}",
        ),
        "gate_gain_local": (jackknifed(predicted_gate, counts, samples), "31", corrected),
    }


def _weight_columns(found: StepVerdicts, counts: NDArray[np.int64], samples: int) -> dict[str, tuple[Floats, str, str]]:
    rates = counts / samples
    change = rates @ found.weights - rates.mean(axis=1)
    columns = {
        "weighted_gain": (change, "26", f"p_w - pbar = N Cov(w, p); w: {found.weights_from}"),
        "covariance_w_p": (change / len(found.weights), "26", "Cov_i(w_i, p_i)"),
        "centre_success": (found.centre.mean(axis=1), "", "pi_theta"),
    }
    if found.updated is not None:
        columns["updated_success"] = (found.updated.mean(axis=1), "", "pi_theta+")
        columns["eps_succ"] = (_kl(found, rates), "12", _kl_note(found.updated.shape[1]))
    return columns


def _kl(found: StepVerdicts, rates: Floats) -> Floats:
    """KL(B_w || B_theta+) per prompt; the reference rate is (successes + 1/2) / (samples + 1), so it is finite."""
    assert found.updated is not None
    samples = found.updated.shape[1]
    return bernoulli_kl(np.clip(rates @ found.weights, 0, 1), (found.updated.sum(axis=1) + 0.5) / (samples + 1))


def _kl_note(samples: int) -> str:
    return f"equal policies would show about {1 / (2 * samples):.4f} from {samples} responses"


def _condition(
    found: StepVerdicts, counts: NDArray[np.int64], samples: int, k: int
) -> tuple[list[Value], dict[str, Any]]:
    """J_K of the three policies, m_K, and its margin over K sqrt(eps / 2) (13)."""
    jack = jackknifed(lambda p: coverage((p * found.weights).sum(axis=-1), k), counts, samples)
    of_mixture = np.clip(jack, 0.0, 1.0)
    columns = {
        f"coverage_{k}_weighted": (of_mixture, "14", f"J_{k}(pi_w), jackknifed"),
        f"coverage_{k}_centre": (_pass(found.centre, k), "14", f"J_{k}(pi_theta)"),
        f"m_{k}": (of_mixture - _pass(found.centre, k), "12", f"J_{k}(pi_w) - J_{k}(pi_theta)"),
    }
    if found.updated is None:
        return mean_values(columns), {"held": None, "note": "no update follows this step"}
    after = _pass(found.updated, k)
    columns[f"coverage_{k}_updated"] = (after, "14", f"J_{k}(pi_theta+)")
    columns[f"coverage_{k}_change"] = (after - _pass(found.centre, k), "14", f"J_{k}(pi_theta+) - J_{k}(pi_theta)")
    m, eps = columns[f"m_{k}"][0], _kl(found, counts / samples)
    right = function_interval([eps], lambda c: slack(c[:, 0], k))
    margin = function_interval([m, eps], lambda c: c[:, 0] - slack(c[:, 1], k))
    values = [
        *mean_values(columns),
        Value(f"slack_{k}", right, "13", f"{k} sqrt(eps_succ / 2)"),
        Value(f"margin_{k}", margin, "13", "m_K minus the slack; the condition is that it is positive"),
    ]
    least = float(slack(1 / (2 * found.updated.shape[1]), k))
    held = {
        "held": margin.value > 0,
        "certain": margin.above_zero or margin.below_zero,
        "least_slack": least,
        "note": f"{found.updated.shape[1]} responses of equal policies would already show a slack of {least:.3f}",
    }
    return values, held


def _pass(verdicts: Verdicts, k: int) -> Floats:
    """Unbiased chance of a success among k responses, per prompt (equation 52)."""
    n = verdicts.shape[1]
    return np.array([pass_at_k(n, int(c), k) for c in verdicts.sum(axis=1)])
