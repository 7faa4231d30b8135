"""All members of a population at once, for models of which many copies fit in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from broadreach.engines.base import Deliver, Progress, TokenScores
from broadreach.engines.choose import choose_runner
from broadreach.engines.decode import Limits, check_requests, decode
from broadreach.engines.digest import served_digest
from broadreach.engines.member_modules import MemberWeights, replace_modules
from broadreach.engines.responses import to_responses
from broadreach.engines.runner import Runner
from broadreach.engines.scoring import score_responses
from broadreach.engines.serving import check_count, perturb_all
from broadreach.models.weights import (
    assign,
    build_model,
    end_tokens,
    load_tokenizer,
    model_context_length,
    named_tensors,
)
from broadreach.types import Centre, Member, Perturbation, Request, Response, Sampling, UserError

WEIGHTS_SHARE = 0.5
"""Share of the memory budget for member weights; the rest is for keys and values."""


class PopulationEngine:
    """Serves chunks of members side by side: every linear layer, embedding and norm gets a member axis.

    The centre itself is served from tensors that no member touches, so nothing has to be restored.
    """

    def __init__(self, directory: Path, dtype: str = "float32", *, rows: int = 1024, memory_gb: float = 4.0) -> None:
        self._model = build_model(directory, dtype)
        self._served = {name: tensor.clone() for name, tensor in named_tensors(self._model).items()}
        self._parameters = sum(p.numel() for p in self._model.parameters())
        self._stand_ins, self._transposed = replace_modules(self._model)
        self._tokenizer = load_tokenizer(directory)
        budget = int(memory_gb * 1e9)
        size = sum(tensor.nbytes for tensor in self._served.values())
        self.most_members = max(1, min(rows, int(budget * WEIGHTS_SHARE) // size))
        """Members that fit side by side."""
        self._limits = Limits(
            rows, int(budget * (1 - WEIGHTS_SHARE)), model_context_length(directory), end_tokens(directory)
        )
        self._weights: MemberWeights = {}
        self._runner: Runner | None = None
        self._centre: Centre | None = None
        self.parameter_names = tuple(self._served)
        self.noise_seconds = 0.0

    def load(self, centre: Centre) -> None:
        """Serve cast(centre, dtype) and remember the centre (not a copy); UserError when it is not this model's."""
        assign(self._served, centre)
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
        """Answer every request under every member, a chunk of members at a time: result[member][request]."""
        check_requests(requests, self._limits, sampling.max_new_tokens)
        results: list[list[Response]] = []
        for first, last in self._chunks(len(members), len(requests)):
            chunk = members[first:last]
            with torch.inference_mode():
                runner = self._serve(chunk, perturbation)
                answers = decode(runner, requests, chunk, sampling, self._limits, progress)
            for position, of_member in enumerate(answers, start=first):
                results.append(to_responses(self._tokenizer, requests, of_member, self._limits.ends))
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
        with torch.inference_mode():
            runner = self._serve([member], perturbation)
            return score_responses(runner, prompts, responses, self._limits)

    def digest(self) -> str:
        """xxh3-128 over the served weights; in float32 it equals `noise.update.digest` of the centre."""
        return served_digest(self._served)

    def _chunks(self, members: int, requests: int) -> list[tuple[int, int]]:
        """Equal chunks of members, as large as memory allows and rows ask for."""
        most = max(1, min(self.most_members, self._limits.rows // max(1, requests)))
        count = -(-members // most) if members else 0
        return [(members * i // count, members * (i + 1) // count) for i in range(count)]

    def _serve(self, members: Sequence[Member], perturbation: Perturbation) -> Runner:
        """Write the members' weights and bind them to the model."""
        start = time.perf_counter()
        weights = self._room(len(members))
        for position, member in enumerate(members):
            outputs = {name: self._as_stored(name, tensor[position]) for name, tensor in weights.items()}
            check_count(perturb_all(self._loaded(), outputs, member, perturbation), self._parameters)
        self.noise_seconds += time.perf_counter() - start
        for stand_in in self._stand_ins:
            stand_in.bind(weights)
        if self._runner is None or self._runner.members != len(members):
            self._runner = None  # lets go of its cache
            self._runner = choose_runner(self._model, len(members))
        return self._runner

    def _as_stored(self, name: str, weight: Tensor) -> Tensor:
        """A member's weight in the checkpoint's order of dimensions."""
        return weight.t() if name in self._transposed else weight

    def _room(self, members: int) -> MemberWeights:
        """Tensors for the weights of so many members, kept from call to call."""
        if not self._weights or len(next(iter(self._weights.values()))) < members:
            self._weights = {}  # let go of the old ones first
            self._weights = {name: self._empty(name, members) for name in self._served}
        return {name: tensor[:members] for name, tensor in self._weights.items()}

    def _empty(self, name: str, members: int) -> Tensor:
        shape = self._served[name].shape
        ordered = tuple(reversed(shape)) if name in self._transposed else tuple(shape)
        return torch.empty(members, *ordered, dtype=self._served[name].dtype)

    def _loaded(self) -> Centre:
        if self._centre is None:
            raise UserError("the engine serves no weights yet; call load(centre) first")
        return self._centre
