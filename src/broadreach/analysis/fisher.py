"""Trace of the Fisher information of a policy, for the right-hand side of Lemma 1 (method.md section 6; equation 9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.policy_divergence_model import MemberModel


@dataclass(frozen=True, slots=True)
class FisherTrace:
    """tr I_x(theta) = E_y ||grad log pi(y | x)||^2 of whole responses, estimated from responses of the centre."""

    of_prompt: NDArray[np.float64]
    """Mean over the responses of each prompt."""
    error: float
    """Standard error of the mean over prompts, from the responses within prompts (the prompts are fixed)."""
    samples: int
    """Gradients taken in all."""

    @property
    def mean(self) -> float:
        """Mean over prompts."""
        return float(self.of_prompt.mean())


def fisher_trace(
    model: MemberModel,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[Sequence[int]]],
    *,
    temperature: float = 1.0,
    advance: Callable[[int], None] | None = None,
) -> FisherTrace:
    """One backward pass a response; `responses`[prompt] were drawn from the centre at this `temperature`.

    At the model's own responses the mean squared gradient is the trace exactly, so only the responses are sampled (no
    random probes). At least two responses a prompt are needed for the standard error, else it is nan.
    """
    model.serve()
    means, variances, count = [], [], 0
    for prompt, drawn in zip(prompts, responses, strict=True):
        squares = []
        for response in drawn:
            squares.append(model.squared_gradient(prompt, response, temperature))
            if advance is not None:
                advance(1)
        count += len(squares)
        means.append(float(np.mean(squares)))
        variances.append(float(np.var(squares, ddof=1)) / len(squares) if len(squares) > 1 else float("nan"))
    error = float(np.sqrt(np.sum(variances)) / len(means))
    return FisherTrace(np.array(means), error, count)
