"""A plain forward pass with full log-probabilities (and gradients) of any member: what the engines do not give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from broadreach.engines.serving import check_count, perturb_all
from broadreach.models.weights import assign, build_model, named_tensors
from broadreach.types import CENTRE_MEMBER, Centre, Member, Perturbation

ROWS = 32
"""Most sequences in one forward pass."""
LOGITS = 32_000_000
"""Most logits (sequences x tokens x vocabulary) of one forward pass: 128 MB, unless one sequence alone has more."""


class MemberModel:
    """One causal language model that serves one member at a time, in float32; `serve` before `log_probabilities`."""

    def __init__(self, directory: Path, centre: Centre, dtype: str = "float32") -> None:
        self._model = cast(Any, build_model(directory, dtype))
        self._tensors = named_tensors(self._model)
        self._parameters = sum(p.numel() for p in self._model.parameters())
        assign(self._tensors, centre)
        self._centre = centre
        self.vocabulary = int(self._model.get_output_embeddings().weight.shape[0])

    def serve(self, member: Member = CENTRE_MEMBER, perturbation: Perturbation | None = None) -> None:
        """Serve cast(centre + sign * sigma * eps); without arguments the centre itself."""
        if member.sign == 0 or perturbation is None:
            assign(self._tensors, self._centre)
        else:
            check_count(perturb_all(self._centre, self._tensors, member, perturbation), self._parameters)

    def log_probabilities(
        self, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], temperature: float = 1.0
    ) -> list[Tensor]:
        """Log-softmax of logits / temperature at every response token: float32 [tokens, vocabulary] a response."""
        found: list[Tensor] = []
        lengths = [len(p) + len(r) for p, r in zip(prompts, responses, strict=True)]
        width = max(1, min(ROWS, LOGITS // (self.vocabulary * max(lengths, default=1))))
        for at in range(0, len(prompts), width):
            pairs = list(zip(prompts[at : at + width], responses[at : at + width], strict=True))
            longest = max(len(p) + len(r) for p, r in pairs)
            rows = [[*p, *r, *([0] * (longest - len(p) - len(r)))] for p, r in pairs]
            logits = self._model(torch.tensor(rows), use_cache=False).logits
            for row, (p, r) in zip(logits, pairs, strict=True):
                part = row[len(p) - 1 : len(p) + len(r) - 1].float()
                found.append(torch.log_softmax(part / temperature, dim=-1))
        return found

    def squared_gradient(self, prompt: Sequence[int], response: Sequence[int], temperature: float = 1.0) -> float:
        """||grad log pi(response | prompt)||^2 over all weights, tied ones once."""
        self._model.requires_grad_(True)
        self._model.zero_grad(set_to_none=True)
        try:
            logs = self.log_probabilities([prompt], [response], temperature)[0]
            chosen = logs.gather(1, torch.tensor(list(response)).unsqueeze(1)).sum()
            chosen.backward()  # type: ignore[no-untyped-call]
            return math.fsum(
                float(p.grad.double().square().sum()) for p in self._model.parameters() if p.grad is not None
            )
        finally:
            self._model.zero_grad(set_to_none=True)
            self._model.requires_grad_(False)
