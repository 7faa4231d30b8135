"""The scalar objectives of Table 13 as functions of token log-probabilities (method.md section 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLIP = 0.2
OBJECTIVES = ("mean_token_log_probability", "policy_sequence_loss", "grpo_surrogate")


def group_advantages(rewards: Floats) -> Floats:
    """(r - mean r) / (std r + 1e-8) within each prompt: [prompts, rollouts] -> same (equation 3)."""
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    flat = (rewards == rewards[:, :1]).all(axis=1, keepdims=True)
    return np.where(flat, 0.0, centred / (rewards.std(axis=1, keepdims=True) + 1e-8))


def mean_log_probability(logs: Sequence[Floats]) -> Floats:
    """Mean log-probability of the tokens of each sequence; minus it is the cross-entropy of supervised training."""
    return np.array([float(np.mean(values, dtype=np.float64)) for values in logs])


def sequence_loss(logs: Sequence[Floats], advantages: Floats) -> Floats:
    """-A log pi(y): REINFORCE's loss of each rollout, its log-probability summed over tokens."""
    return -advantages * np.array([float(np.sum(values, dtype=np.float64)) for values in logs])


def clipped_surrogate(logs: Sequence[Floats], base: Sequence[Floats], advantages: Floats, clip: float = CLIP) -> Floats:
    """Mean over tokens of min(rho A, clip(rho) A), rho against the base that drew the rollouts; no KL term (4)."""
    found = []
    for new, old, advantage in zip(logs, base, advantages, strict=True):
        ratio = np.exp(np.asarray(new, dtype=np.float64) - np.asarray(old, dtype=np.float64))
        found.append(float(np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage).mean()))
    return np.array(found)
