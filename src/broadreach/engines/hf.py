"""Any causal language model of Transformers, one member at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from broadreach.engines.base import Deliver, Progress, TokenScores
from broadreach.engines.blocked_head import block_head
from broadreach.engines.choose import choose_runner
from broadreach.engines.decode import Limits, check_requests, decode
from broadreach.engines.responses import to_responses
from broadreach.engines.scoring import score_responses
from broadreach.engines.serving import Precision, ServedWeights
from broadreach.models.weights import (
    build_model,
    end_tokens,
    load_tokenizer,
    model_context_length,
    named_tensors,
)
from broadreach.types import Centre, Member, Perturbation, Request, Response, Sampling


class HfEngine:
    """Serves members by writing cast(theta + sign * sigma * eps) over the model's parameters, in place."""

    def __init__(
        self,
        directory: Path,
        dtype: str = "float32",
        *,
        rows: int = 1024,
        memory_gb: float = 4.0,
        precision: Precision = "exact",
    ) -> None:
        model = build_model(directory, dtype)
        parameters = sum(p.numel() for p in model.parameters())
        self._weights = ServedWeights(named_tensors(model), parameters, precision)
        block_head(model)
        self._runner = choose_runner(model)
        self._tokenizer = load_tokenizer(directory)
        self._limits = Limits(rows, int(memory_gb * 1e9), model_context_length(directory), end_tokens(directory))
        self.parameter_names = tuple(self._weights.tensors)

    @property
    def noise_seconds(self) -> float:
        """Wall seconds spent so far on perturbing and restoring weights."""
        return self._weights.noise_seconds

    def load(self, centre: Centre) -> None:
        """Serve cast(centre, dtype) and remember the centre (not a copy); UserError when it is not this model's."""
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
        """Answer every request under every member, one member after the other: result[member][request]."""
        check_requests(requests, self._limits, sampling.max_new_tokens)
        results: list[list[Response]] = []
        with self._weights.restored():
            for position, member in enumerate(members):
                with self._weights.member(member, perturbation), torch.inference_mode():
                    answers = decode(self._runner, requests, [member], sampling, self._limits, progress)[0]
                results.append(to_responses(self._tokenizer, requests, answers, self._limits.ends))
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
        """Teacher-force each response after its prompt under one member, at temperature 1."""
        with self._weights.restored(), self._weights.member(member, perturbation), torch.inference_mode():
            return score_responses(self._runner, prompts, responses, self._limits)

    def digest(self) -> str:
        """xxh3-128 over the served weights; in float32 it equals `noise.update.digest` of the centre."""
        return self._weights.digest()
