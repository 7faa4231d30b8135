"""Quantities of the paper's theory (method.md section 6; equations 9, 12-14, 25, 27-31), for rates [..., members]."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def binary_entropy(p: ArrayLike) -> Floats:
    """h(p) in nats, elementwise, with 0 log 0 = 0."""
    rates = np.asarray(p, dtype=np.float64)
    return -_x_log_x(rates) - _x_log_x(1 - rates)


def js_rates(p: Floats) -> Floats:
    """JS_succ = h(mean p) - mean h(p) over the last axis (equation 10), in nats; never negative."""
    return np.maximum(0.0, binary_entropy(p.mean(axis=-1)) - binary_entropy(p).mean(axis=-1))


def gain_rates(p: Floats) -> Floats:
    """P_pop - P_same over the last axis (equation 11)."""
    return (1 - p.mean(axis=-1)) ** p.shape[-1] - (1 - p).prod(axis=-1)


def local_gain(mean: ArrayLike, js: ArrayLike, members: int) -> Floats:
    """What equation (25) predicts for P_pop - P_same: N pbar (1 - pbar)^(N-1) JS_succ."""
    rates = np.asarray(mean, dtype=np.float64)
    return members * rates * (1 - rates) ** (members - 1) * np.asarray(js, dtype=np.float64)


def gate_weights(p: Floats, strength: float) -> Floats:
    """The oracle gate w_i ~ exp(lambda p_i), normalised over the last axis (equation 27)."""
    raised = np.exp(strength * (p - p.max(axis=-1, keepdims=True)))
    return raised / raised.sum(axis=-1, keepdims=True)


def gate_gain(p: Floats, strength: float) -> Floats:
    """p_w - pbar under the oracle gate, over the last axis."""
    return (gate_weights(p, strength) * p).sum(axis=-1) - p.mean(axis=-1)


def local_gate_gain(mean: ArrayLike, js: ArrayLike, strength: float) -> Floats:
    """What equation (31) predicts for the gate's gain: 2 lambda pbar (1 - pbar) JS_succ."""
    rates = np.asarray(mean, dtype=np.float64)
    return 2 * strength * rates * (1 - rates) * np.asarray(js, dtype=np.float64)


def shifted_weights(rewards: ArrayLike) -> Floats:
    """Normalised non-negative weights of Lemma 3 from rewards [members]: z-scores, minus the lowest, over their sum.

    Since z-scores sum to zero, this is (1 + z_i / |min z|) / N: affine in z, so N Cov(w, p) = Cov(z, p) / |min z|.
    Equal rewards give equal weights.
    """
    values = np.asarray(rewards, dtype=np.float64)
    lifted = values - values.min()
    total = lifted.sum()
    return lifted / total if total > 0 else np.full(len(values), 1 / len(values))


def bernoulli_kl(a: ArrayLike, b: ArrayLike) -> Floats:
    """KL(Bernoulli(a) || Bernoulli(b)) in nats, elementwise; infinite where b excludes what a does not."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    return np.maximum(0.0, _x_log_ratio(first, second) + _x_log_ratio(1 - first, 1 - second))


def coverage(p: ArrayLike, k: int) -> Floats:
    """Chance of at least one success in k tries, 1 - (1 - p)^k, elementwise; its mean over prompts is J_K (14)."""
    return 1 - (1 - np.asarray(p, dtype=np.float64)) ** k


def slack(eps: ArrayLike, k: int) -> Floats:
    """K sqrt(eps / 2): by how much J_K of two policies can differ when their mean success KL is `eps` (12)."""
    return k * np.sqrt(np.asarray(eps, dtype=np.float64) / 2)


def lemma_1(sigma: float, members: int, trace: ArrayLike) -> Floats:
    """Right-hand side of Lemma 1: sigma^2 / 2 (1 - 1/N) tr I(theta), in nats (equation 9)."""
    return sigma**2 / 2 * (1 - 1 / members) * np.asarray(trace, dtype=np.float64)


def _x_log_x(x: Floats) -> Floats:
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0)


def _x_log_ratio(x: Floats, y: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        ratio = np.where(x > 0, x, 1.0) / np.where(y > 0, y, 0.0)
        return np.where(x > 0, x * np.log(ratio), 0.0)
