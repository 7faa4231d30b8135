"""The decoding loop: the same requests under every member of a runner, one token a row and pass.

Rollouts are nearly all of the cost of ES, so: the tokens that all prompts share are read once, equal prompts are read
once however many samples are drawn, rows that have finished are compacted away, and logits are computed only where a
token is chosen. Transformers' `generate()` is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from broadreach.engines.base import Progress
from broadreach.engines.runner import Prompts, Runner, Tokens, common_prefix, distinct_prompts
from broadreach.noise.sampling import SampleRows, sample_rows, sample_tokens
from broadreach.types import Member, Request, Sampling, UserError

LOGITS = 2**24
"""Most logits (rows x vocabulary) computed at once, 64 MB in float32: more rows are not faster on a CPU."""
KEEP_ABOVE = 0.9
"""Compact when fewer than this share of a batch's rows are still going."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a batch."""

    rows: int
    """Most rows of one batch, over all members."""
    cache_bytes: int
    """Most memory of the rows' keys and values."""
    context_length: int
    """Most tokens of a prompt and its response."""
    ends: frozenset[int]
    """Token ids that end a response."""


def check_requests(requests: Sequence[Request], limits: Limits, max_new_tokens: int) -> None:
    """UserError naming the first problem whose prompt is empty, or does not fit with its response in the context."""
    for request in requests:
        if not request.prompt:
            raise UserError(f"problem {request.problem_id}: the prompt is empty; check the task and the chat template")
        needed = len(request.prompt) + max_new_tokens
        if needed > limits.context_length:
            raise UserError(
                f"problem {request.problem_id}: prompt of {len(request.prompt)} tokens plus max_new_tokens"
                f" {max_new_tokens} is {needed}, more than the model's context of {limits.context_length};"
                " lower sampling.max_new_tokens or set train.max_prompt_tokens"
            )


def decode(
    runner: Runner,
    requests: Sequence[Request],
    members: Sequence[Member],
    sampling: Sampling,
    limits: Limits,
    progress: Progress | None = None,
) -> list[list[Tokens]]:
    """Answer every request under every member: result[member][request] is the token ids, the end token included.

    `members` are those whose weights the runner serves now, in its order. UserError as `check_requests` says, and when
    logits are not finite.
    """
    assert len(members) == runner.members
    check_requests(requests, limits, sampling.max_new_tokens)
    answers: list[list[Tokens]] = [[()] * len(requests) for _ in members]
    if not requests:
        return answers
    prefix = common_prefix([request.prompt for request in requests])
    runner.set_prefix(prefix)
    order = sorted(range(len(requests)), key=lambda i: (-len(requests[i].prompt), requests[i].prompt))
    width = max(1, _most_rows(runner, requests, len(prefix), sampling.max_new_tokens, limits) // len(members))
    for first in range(0, len(order), width):
        chosen = order[first : first + width]
        batch = [requests[i] for i in chosen]
        prompts = distinct_prompts([request.prompt[len(prefix) :] for request in batch])
        generated = _decode_batch(runner, prompts, batch, members, sampling, limits, progress)
        for slot, tokens in enumerate(generated):
            answers[slot // len(chosen)][chosen[slot % len(chosen)]] = _until_end(tokens, limits.ends)
    return answers


def _most_rows(runner: Runner, requests: Sequence[Request], prefix: int, max_new_tokens: int, limits: Limits) -> int:
    """Rows of one batch that the settings, the memory of cache and logits, and the runner allow."""
    longest = max(len(request.prompt) for request in requests)
    by_memory = limits.cache_bytes // ((longest - prefix + max_new_tokens) * runner.column_bytes)
    return min(limits.rows, by_memory, runner.most_prompt_tokens // longest, LOGITS // runner.vocabulary)


def _decode_batch(
    runner: Runner,
    prompts: Prompts,
    requests: Sequence[Request],
    members: Sequence[Member],
    sampling: Sampling,
    limits: Limits,
    progress: Progress | None,
) -> list[list[int]]:
    """Token ids of each row, member by member; what follows a row's first end token is meaningless."""
    logits, rows = runner.start(prompts, sampling.max_new_tokens)
    noise = sample_rows(
        [request.problem_id for request in requests] * len(members),
        [request.sample for request in requests] * len(members),
        [member.index for member in members for _ in requests],
        seed=sampling.seed,
        step=sampling.step,
        common=sampling.common,
    )
    slots = torch.arange(len(noise))
    generated = torch.zeros(len(noise), sampling.max_new_tokens, dtype=torch.long)
    is_end = torch.zeros(logits.shape[1], dtype=torch.bool)
    is_end[[end for end in limits.ends if end < len(is_end)]] = True
    going = torch.ones(len(noise), dtype=torch.bool)
    for position in range(sampling.max_new_tokens):
        tokens = _pick(logits, sampling.temperature, noise, position)
        generated[slots, position] = tokens
        ended = is_end[tokens] & going
        going &= ~ended
        if progress is not None and (count := int(ended.sum())):
            progress(count)
        left = _busiest(going, len(members))
        if left == 0 or position + 1 == sampling.max_new_tokens:
            break
        if left < KEEP_ABOVE * (len(slots) // len(members)):
            kept = _keep_going_first(going, len(members), left)
            rows.keep(kept, left)
            noise = noise.take(kept.numpy())
            slots, going, tokens = slots[kept], going[kept], tokens[kept]
        del logits  # its memory serves the next ones
        logits = rows.step(tokens)  # noqa: F841 (the loop reads it)
    if progress is not None and (count := int(going.sum())):
        progress(count)
    listed: list[list[int]] = generated.tolist()
    return listed


def _pick(logits: Tensor, temperature: float, noise: SampleRows, position: int) -> Tensor:
    """One token a row. Greedy through NumPy, whose arg max is several times faster than torch's on a CPU."""
    if temperature == 0 and logits.dtype == torch.float32:
        values = logits.numpy()
        tokens = values.argmax(axis=1)
        if np.isfinite(np.take_along_axis(values, tokens[:, None], axis=1)).all():
            return torch.from_numpy(tokens)
    return sample_tokens(logits, temperature, noise, np.full(len(noise), position))


def _busiest(going: Tensor, members: int) -> int:
    """The largest number of unfinished rows that any member has."""
    return int(going.view(members, -1).sum(1).max())


def _keep_going_first(going: Tensor, members: int, width: int) -> Tensor:
    """Row indices, `width` of each member: its unfinished rows in order, then finished ones to fill up."""
    by_member = going.view(members, -1)
    order = torch.argsort((~by_member).long(), dim=1, stable=True)[:, :width]
    kept = order.sort(dim=1).values + torch.arange(members).unsqueeze(1) * by_member.shape[1]
    return kept.reshape(-1)


def _until_end(tokens: Sequence[int], ends: frozenset[int]) -> Tokens:
    for position, token in enumerate(tokens):
        if token in ends:
            return tuple(tokens[: position + 1])
    return tuple(tokens)
