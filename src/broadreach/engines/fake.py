"""An engine without a language model: responses are a fixed function of the weights, in milliseconds.

For testing loops, ledgers, fleets and crashes. One number decides everything: `v = sin(gain * w . u)`, where `w` are
all served weights and `u` is the unit vector with equal entries. Tokens crowd around `50 + 45 v`, and the text ends in
`\\boxed{...}` when `v` exceeds a threshold of the problem, spread over (-1, 1): so rewards depend on the weights, and
ES improves them by moving along `u`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch
import xxhash

from broadreach.engines.base import Deliver, Progress, TokenScores
from broadreach.engines.serving import Precision, ServedWeights
from broadreach.models.weights import torch_dtype
from broadreach.noise.sampling import sample_rows, sample_tokens
from broadreach.types import Centre, Member, Perturbation, Request, Response, Sampling

VOCABULARY = 100
END = 1
SHAPES: Mapping[str, tuple[int, ...]] = {"layer.bias": (8,), "layer.weight": (8, 6), "out.weight": (3, 8)}
"""The synthetic model when nothing else is asked for."""


class FakeEngine:
    """Perturbs, restores and counts like the real engines, on any small set of named tensors."""

    def __init__(
        self,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
        *,
        dtype: str = "float32",
        gain: float = 300.0,
        delay: float = 0.0,
        precision: Precision = "exact",
    ) -> None:
        self._dtype, self._gain, self._delay, self._precision = dtype, gain, delay, precision
        self._weights = self._allocate(shapes) if shapes is not None else None
        self.parameter_names = tuple(sorted(shapes)) if shapes is not None else ()

    @property
    def noise_seconds(self) -> float:
        """Wall seconds spent so far on perturbing and restoring weights."""
        return 0.0 if self._weights is None else self._weights.noise_seconds

    def load(self, centre: Centre) -> None:
        """Serve cast(centre); without shapes at construction, the first centre decides them."""
        if self._weights is None:
            self._weights = self._allocate({name: array.shape for name, array in centre.items()})
            self.parameter_names = tuple(sorted(centre))
        self._weights.load(centre)

    def generate(
        self,
        requests: Sequence[Request],
        members: Sequence[Member],
        perturbation: Perturbation,
        sampling: Sampling,
        progress: Progress | None = None,
        deliver: Deliver | None = None,
    ) -> list[list[Response]]:
        """Answer every request under every member after `delay` seconds a member: result[member][request]."""
        results: list[list[Response]] = []
        weights = self._serving()
        with weights.restored():
            for position, member in enumerate(members):
                with weights.member(member, perturbation):
                    time.sleep(self._delay)
                    value = self._value()
                results.append([_answer(value, request, member, sampling) for request in requests])
                if progress is not None:
                    progress(len(requests))
                if deliver is not None:
                    deliver(position, results[-1])
        return results

    def score_tokens(
        self,
        prompts: Sequence[Sequence[int]],
        responses: Sequence[Sequence[int]],
        member: Member,
        perturbation: Perturbation,
    ) -> list[TokenScores]:
        """Log-probabilities and entropies under the distribution that `generate` draws from at temperature 1."""
        weights = self._serving()
        with weights.restored(), weights.member(member, perturbation):
            logs = torch.log_softmax(_logits(self._value()), dim=0)
        entropy = float(-(logs.exp() * logs).sum())
        return [
            TokenScores(logs[list(tokens)].numpy(), np.full(len(tokens), entropy, np.float32)) for tokens in responses
        ]

    def digest(self) -> str:
        """xxh3-128 over the served weights."""
        return self._serving().digest()

    def _serving(self) -> ServedWeights:
        return self._weights if self._weights is not None else ServedWeights({}, 0)

    def _allocate(self, shapes: Mapping[str, tuple[int, ...]]) -> ServedWeights:
        kind = torch_dtype(self._dtype)
        tensors = {name: torch.zeros(tuple(shape), dtype=kind) for name, shape in sorted(shapes.items())}
        return ServedWeights(tensors, sum(t.numel() for t in tensors.values()), self._precision)

    def _value(self) -> float:
        tensors = self._serving().tensors.values()
        total = sum(float(tensor.double().sum()) for tensor in tensors)
        return math.sin(self._gain * total / math.sqrt(sum(tensor.numel() for tensor in tensors)))


def zero_centre(shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> Centre:
    """A centre of zeros for the synthetic model, where `v` is 0 and grows along `u`."""
    return {name: np.zeros(shape, np.float32) for name, shape in sorted(shapes.items())}


def threshold(problem_id: str) -> float:
    """What `v` must exceed for a boxed answer to this problem: fixed, spread evenly over (-1, 1)."""
    return xxhash.xxh3_64_intdigest(problem_id.encode()) / 2**63 - 1.0


def _logits(value: float) -> torch.Tensor:
    distance = torch.arange(VOCABULARY, dtype=torch.float32) - (50.0 + 45.0 * value)
    return -0.5 * (distance / 2.0) ** 2


def _answer(value: float, request: Request, member: Member, sampling: Sampling) -> Response:
    wanted = 2 + xxhash.xxh3_64_intdigest(request.problem_id.encode()) % 4
    length = min(wanted, sampling.max_new_tokens)
    rows = sample_rows(
        [request.problem_id] * length,
        [request.sample] * length,
        [member.index] * length,
        seed=sampling.seed,
        step=sampling.step,
        common=sampling.common,
    )
    logits = _logits(value).repeat(length, 1)
    drawn = [int(token) for token in sample_tokens(logits, sampling.temperature, rows, np.arange(length))]
    text = " ".join(str(token) for token in drawn)
    if value > threshold(request.problem_id):
        text += f" \\boxed{{{drawn[0]}}}"
    stopped = length < sampling.max_new_tokens
    return Response(
        text=text,
        tokens=(*drawn, END) if stopped else tuple(drawn),
        finish_reason="stop" if stopped else "length",
        prompt_tokens=len(request.prompt),
    )
