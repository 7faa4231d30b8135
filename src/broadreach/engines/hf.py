"""Any causal language model of Transformers, one member at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from broadreach.engines.base import Deliver, Progress, TokenScores
from broadreach.engines.decode import Limits, check_requests, decode
from broadreach.engines.digest import served_digest
from broadreach.engines.responses import to_responses
from broadreach.engines.runner import choose_runner
from broadreach.engines.scoring import score_responses
from broadreach.models.weights import (
    assign,
    build_model,
    end_tokens,
    load_tokenizer,
    model_context_length,
    named_tensors,
)
from broadreach.noise.paper_precision import paper_perturb_, paper_restore_
from broadreach.noise.perturb import perturb_into
from broadreach.types import Centre, Member, Perturbation, Request, Response, Sampling, UserError


class HfEngine:
    """Serves members by writing cast(theta + sign * sigma * eps) over the model's parameters, in place.

    `precision="exact"` restores by copying from the centre, whatever happened. `precision="paper"` adds and subtracts
    in the model's dtype as published, so the served weights drift: that is what it is for.
    """

    def __init__(
        self,
        directory: Path,
        dtype: str = "float32",
        *,
        rows: int = 1024,
        memory_gb: float = 4.0,
        precision: Literal["exact", "paper"] = "exact",
    ) -> None:
        self._model = build_model(directory, dtype)
        self._tensors = named_tensors(self._model)
        self._parameters = sum(p.numel() for p in self._model.parameters())
        self._tokenizer = load_tokenizer(directory)
        self._limits = Limits(
            rows, int(memory_gb * 1e9), model_context_length(directory), end_tokens(directory)
        )
        self._precision = precision
        self._centre: Centre | None = None
        self._runner = choose_runner(self._model)
        self.parameter_names = tuple(self._tensors)
        self.noise_seconds = 0.0

    def load(self, centre: Centre) -> None:
        """Serve cast(centre, dtype) and remember the centre (not a copy); UserError when it is not this model's."""
        assign(self._tensors, centre)
        self._centre = centre

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
        with self._restored():
            for position, member in enumerate(members):
                with self._served(member, perturbation), torch.inference_mode():
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
        with self._restored(), self._served(member, perturbation), torch.inference_mode():
            return score_responses(self._runner, prompts, responses, self._limits)

    def digest(self) -> str:
        """xxh3-128 over the served weights; in float32 it equals `noise.update.digest` of the centre."""
        return served_digest(self._tensors)

    @contextmanager
    def _restored(self) -> Iterator[None]:
        """Serve the centre again at the end, exceptions included; a perturbation writes whole tensors from the centre,
        so between members nothing needs restoring."""
        centre = self._loaded()
        try:
            yield
        finally:
            if self._precision == "exact":
                with self._timed():
                    assign(self._tensors, centre)

    @contextmanager
    def _served(self, member: Member, perturbation: Perturbation) -> Iterator[None]:
        exact = self._precision == "exact"
        with self._timed():
            if exact:
                self._perturb(member, perturbation)
            else:
                self._walk(paper_perturb_, member, perturbation)
        try:
            yield
        finally:
            if not exact:
                with self._timed():
                    self._walk(paper_restore_, member, perturbation)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.noise_seconds += time.perf_counter() - start

    def _perturb(self, member: Member, perturbation: Perturbation) -> None:
        centre, written = self._loaded(), 0
        for name, tensor in self._tensors.items():
            perturb_into(
                centre[name],
                tensor,
                seed=perturbation.seed,
                step=perturbation.step,
                direction=member.direction,
                sign=member.sign,
                sigma=perturbation.sigma,
                name=name,
            )
            written += tensor.numel()
        if written != self._parameters:
            raise UserError(
                f"{written} weights were perturbed, but the model has {self._parameters}; load the centre of this model"
            )

    def _walk(self, move: Callable[..., None], member: Member, perturbation: Perturbation) -> None:
        """The published arithmetic: add or subtract the noise in the served dtype, tensor by tensor."""
        if member.sign == 0:
            return
        for name, tensor in self._tensors.items():
            move(
                tensor,
                seed=perturbation.seed,
                step=perturbation.step,
                direction=member.direction,
                sign=member.sign,
                sigma=perturbation.sigma,
                name=name,
            )

    def _loaded(self) -> Centre:
        if self._centre is None:
            raise UserError("the engine serves no weights yet; call load(centre) first")
        return self._centre
