"""JS_pol of a population of policies by teacher forcing, exact over the vocabulary (method.md section 6; equation 9).

A policy is the distribution of whole responses; pibar is the equal mixture of the members. Along a response y drawn
from pibar, JS_pol = mean_i KL(pi_i || pibar) = E sum_t [H(mix_t) - sum_i w_it H(pi_i(. | y_<t))], where
w_it ~ pi_i(y_<t) is the posterior over members and mix_t = sum_i w_it pi_i(. | y_<t) the mixture's next token. The
entropies are exact sums over the vocabulary, only the prefixes are sampled. The first sum alone is the mixture's
entropy, the second the members' mean entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from broadreach.analysis.policy_divergence_model import ROWS, MemberModel
from broadreach.types import Member, Perturbation, UserError

Floats = NDArray[np.float64]

VALUES = 32_000_000
"""Most mixture probabilities (tokens x vocabulary) held at once: 128 MB."""


@dataclass(frozen=True, slots=True)
class Forced:
    """One retained response of the population."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PolicyDivergence:
    """Per response drawn from the mixture, in nats a response: [responses] each."""

    js: Floats
    mixture_entropy: Floats
    member_entropy: Floats
    """Posterior mean of the members' entropies, summed over tokens."""
    sequence_js: Floats
    """mean_i of pi_i / pibar log(pi_i / pibar) on the response: a noisier estimate of JS_pol without the vocabulary."""
    tokens: NDArray[np.int64]


def policy_divergence(
    model: MemberModel,
    members: Sequence[Member],
    perturbation: Perturbation,
    responses: Sequence[Forced],
    *,
    temperature: float = 1.0,
    values: int = VALUES,
    advance: Callable[[int], None] | None = None,
) -> PolicyDivergence:
    """Score every response under every member twice: for the posterior, then for the mixture.

    `responses` are drawn from the members in equal shares. Memory: a few times `values` numbers, whatever the
    population (one response with more is a chunk of its own).
    `advance` is called with the (member, response) pairs just scored. UserError when there is no response.
    """
    kept = [response for response in responses if response.tokens]
    if len(kept) < len(responses) or not kept:
        raise UserError("JS_pol: a response has no token (or there is none); raise --max-new-tokens")
    parts = [
        _chunk(model, members, perturbation, chunk, temperature, advance)
        for chunk in _chunks(kept, model.vocabulary, values)
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    lengths = np.array([len(response.tokens) for response in kept])
    return PolicyDivergence(columns[0], columns[1], columns[2], columns[3], lengths)


@torch.inference_mode()
def _chunk(
    model: MemberModel,
    members: Sequence[Member],
    perturbation: Perturbation,
    chunk: Sequence[Forced],
    temperature: float,
    advance: Callable[[int], None] | None,
) -> tuple[Floats, Floats, Floats, Floats]:
    lengths = [len(response.tokens) for response in chunk]
    chosen, entropy = [], []
    for member in members:
        model.serve(member, perturbation)
        logs, entropies = _walk(model, chunk, temperature)
        chosen.append(logs)
        entropy.append(entropies)
        if advance is not None:
            advance(len(chunk))
    totals, posterior = _posteriors(torch.stack(chosen), lengths)
    mixture: Tensor | None = None
    for index, member in enumerate(members):
        model.serve(member, perturbation)
        at = 0
        for part in _full(model, chunk, temperature):
            mixture = torch.zeros(sum(lengths), part.shape[1]) if mixture is None else mixture
            rows = slice(at, at + len(part))
            mixture[rows] += posterior[index, rows, None].float() * part.exp()
            at = rows.stop
        if advance is not None:
            advance(len(chunk))
    assert mixture is not None
    mixed = _sums(torch.cat([_entropy(rows) for rows in torch.split(mixture, 256)]), lengths)
    own = _sums((posterior * torch.stack(entropy)).sum(0), lengths)
    ratio = torch.softmax(totals, 0) * len(members)
    sequence = torch.where(ratio > 0, ratio * ratio.log(), 0.0).mean(0).numpy()
    return mixed - own, mixed, own, sequence


def _walk(model: MemberModel, chunk: Sequence[Forced], temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probability of each token and entropy at it under the served member, all responses joined: float64."""
    logs, entropies = [], []
    responses = iter(chunk)
    for part in _full(model, chunk, temperature):
        tokens = torch.tensor(next(responses).tokens)
        logs.append(part.gather(1, tokens.unsqueeze(1)).squeeze(1).double())
        entropies.append(-(part.exp().double() * part.double().clamp(min=-1e30)).sum(1))
    return torch.cat(logs), torch.cat(entropies)


def _full(model: MemberModel, chunk: Sequence[Forced], temperature: float) -> list[Tensor]:
    return model.log_probabilities([r.prompt for r in chunk], [r.tokens for r in chunk], temperature)


def _posteriors(chosen: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Log pi_i(y) [members, responses], and the posterior over members before each token [members, tokens]."""
    totals, posterior = [], []
    for part in torch.split(chosen, list(lengths), dim=1):
        before = part.cumsum(1) - part
        posterior.append(torch.softmax(before, 0))
        totals.append(part.sum(1))
    return torch.stack(totals, 1), torch.cat(posterior, 1)


def _entropy(probabilities: Tensor) -> Tensor:
    p = probabilities.double()
    return -torch.where(p > 0, p * p.log(), 0.0).sum(1)


def _sums(values: Tensor, lengths: Sequence[int]) -> Floats:
    found: Floats = np.array([float(part.sum()) for part in torch.split(values, list(lengths))])
    return found


def _chunks(responses: Sequence[Forced], vocabulary: int, values: int) -> list[list[Forced]]:
    """Consecutive responses, at most ROWS, whose tokens times the vocabulary stay within `values`."""
    chunks: list[list[Forced]] = []
    tokens = 0
    for response in responses:
        size = len(response.tokens) * vocabulary
        if not chunks or tokens + size > values or len(chunks[-1]) == ROWS:
            chunks.append([])
            tokens = 0
        chunks[-1].append(response)
        tokens += size
    return chunks
