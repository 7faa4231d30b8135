"""Success diversity of a population of policies (method.md section 6; equations 10, 11, 25-26)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def js_success(p: ArrayLike) -> float:
    """Jensen-Shannon divergence of the members' success, h(mean p) - mean h(p), in nats (equation 10).

    `p`: success probabilities [members]. Computed as the mean of KL(p_i || mean p), so it is never negative and
    exactly 0 for equal members. ValueError when empty or outside [0, 1].
    """
    rates = _rates(p)
    if (rates == rates[0]).all():
        return 0.0
    mean = float(rates.mean())
    return max(0.0, float((_relative(rates, mean) + _relative(1 - rates, 1 - mean)).mean()))


def population_success(p: ArrayLike) -> float:
    """Chance that at least one member succeeds in one try each, 1 - prod(1 - p_i) (equation 11)."""
    with np.errstate(divide="ignore"):
        return float(-np.expm1(np.log1p(-_rates(p)).sum()))


def single_policy_success(p: ArrayLike) -> float:
    """Chance that one policy of the mean rate succeeds in as many tries, 1 - (1 - mean p)^N (equation 11)."""
    rates = _rates(p)
    with np.errstate(divide="ignore"):
        return float(-np.expm1(len(rates) * np.log1p(-_mean(rates))))


def population_gain(p: ArrayLike) -> float:
    """`population_success` minus `single_policy_success`, without cancellation; never negative (Lemma 2)."""
    rates = _rates(p)
    mean = _mean(rates)
    if (rates == rates[0]).all():
        return 0.0
    if (rates == 1).any():
        return float((1 - mean) ** len(rates))
    same = len(rates) * np.log1p(-mean)
    return max(0.0, float(-np.exp(same) * np.expm1(np.log1p(-rates).sum() - same)))


def weighted_gain(w: ArrayLike, p: ArrayLike) -> float:
    """Gain in success by weighting the members, N Cov(w, p) = p_w - mean p (equation 26, Lemma 3).

    `w`, `p`: [members]; the weights sum to 1 (a negative one is allowed). ValueError when lengths differ or the
    weights do not sum to 1 within 1e-9.
    """
    rates = _rates(p)
    weights = np.asarray(w, dtype=np.float64)
    if weights.shape != rates.shape:
        raise ValueError(f"weighted_gain: {weights.size} weights for {rates.size} members; give one weight a member")
    if not abs(weights.sum() - 1) <= 1e-9:
        raise ValueError(f"weighted_gain: the weights sum to {weights.sum():g}; divide them by their sum")
    return float(((weights - weights.mean()) * (rates - _mean(rates))).sum())


def _relative(a: Floats, b: float) -> Floats:
    """a log(a / b), with 0 log 0 = 0."""
    positive = a > 0
    return np.where(positive, a * np.log(np.where(positive, a, 1.0) / b), 0.0) if b > 0 else np.zeros_like(a)


def _mean(rates: Floats) -> float:
    return float(rates[0] if (rates == rates[0]).all() else rates.mean())


def _rates(p: ArrayLike) -> Floats:
    rates = np.asarray(p, dtype=np.float64)
    if rates.ndim != 1 or rates.size == 0:
        raise ValueError(f"success probabilities have shape {rates.shape}; give one per member, and at least one")
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValueError("a success probability lies outside 0 to 1 (or is not a number); give shares")
    return rates
