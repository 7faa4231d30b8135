"""The decoding loop: the same requests under every member of a runner, one token a row and pass.

Rollouts are nearly all of the cost of ES, so: the tokens that all prompts share are read once, equal prompts are read
once however many samples are drawn, rows that have finished are compacted away, and logits are computed only where a
token is chosen. Transformers' `generate()` is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from broadreach.engines.base import Progress
from broadreach.engines.runner import Prompts, Runner, Tokens
from broadreach.types import Request, UserError

Choose: TypeAlias = Callable[[Tensor, Sequence[int], Sequence[int], int], Tensor]
"""(logits [rows, vocabulary], member position of each row, request of each row, position) -> token ids [rows]."""

KEEP_ABOVE = 0.9
"""Compact when fewer than this share of a batch's rows are still going."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds a batch."""

    rows: int
    """Most rows of one batch, over all members."""
    max_new_tokens: int
    context_length: int


def check_requests(requests: Sequence[Request], limits: Limits) -> None:
    """UserError naming the first problem whose prompt is empty, or does not fit with its response in the context."""
    for request in requests:
        if not request.prompt:
            raise UserError(f"problem {request.problem_id}: the prompt is empty; check the task and the chat template")
        needed = len(request.prompt) + limits.max_new_tokens
        if needed > limits.context_length:
            raise UserError(
                f"problem {request.problem_id}: prompt of {len(request.prompt)} tokens plus max_new_tokens"
                f" {limits.max_new_tokens} is {needed}, more than the model's context of {limits.context_length};"
                " lower sampling.max_new_tokens or set train.max_prompt_tokens"
            )


def decode(
    runner: Runner,
    requests: Sequence[Request],
    prefix: Tokens,
    limits: Limits,
    ends: frozenset[int],
    choose: Choose,
    progress: Progress | None = None,
) -> list[list[Tokens]]:
    """Answer every request under every member: result[member][request] is the token ids, the end token included.

    `prefix` begins every prompt (see `runner.common_prefix`).
    """
    runner.set_prefix(prefix)
    answers: list[list[Tokens]] = [[()] * len(requests) for _ in range(runner.members)]
    order = sorted(range(len(requests)), key=lambda i: (-len(requests[i].prompt), requests[i].prompt))
    width = max(1, limits.rows // runner.members)
    for first in range(0, len(order), width):
        chosen = order[first : first + width]
        prompts = _distinct([requests[i].prompt[len(prefix) :] for i in chosen])
        generated = _decode_batch(runner, prompts, chosen, limits.max_new_tokens, ends, choose, progress)
        for member in range(runner.members):
            for row, request in enumerate(chosen):
                answers[member][request] = _until_end(generated[member * len(chosen) + row], ends)
    return answers


def _decode_batch(
    runner: Runner,
    prompts: Prompts,
    requests: Sequence[int],
    max_new_tokens: int,
    ends: frozenset[int],
    choose: Choose,
    progress: Progress | None,
) -> list[list[int]]:
    """Token ids of each row, member by member; what follows a row's first end token is meaningless."""
    width = len(requests)
    total = runner.members * width
    logits, rows = runner.start(prompts, max_new_tokens)
    generated = torch.zeros(total, max_new_tokens, dtype=torch.long)
    is_end = torch.zeros(logits.shape[1], dtype=torch.bool)
    is_end[[end for end in ends if end < len(is_end)]] = True
    slots = torch.arange(total)
    going = torch.ones(total, dtype=torch.bool)
    row_members, row_requests = _describe(slots, width, requests)
    for position in range(max_new_tokens):
        tokens = choose(logits, row_members, row_requests, position)
        generated[slots, position] = tokens
        ended = is_end[tokens] & going
        going &= ~ended
        if progress is not None and (count := int(ended.sum())):
            progress(count)
        left = _busiest(going, runner.members)
        if left == 0 or position + 1 == max_new_tokens:
            break
        if left < KEEP_ABOVE * (len(slots) // runner.members):
            kept = _keep_going_first(going, runner.members, left)
            rows.keep(kept, left)
            slots, going, tokens = slots[kept], going[kept], tokens[kept]
            row_members, row_requests = _describe(slots, width, requests)
        logits = rows.step(tokens)
    if progress is not None and (count := int(going.sum())):
        progress(count)
    listed: list[list[int]] = generated.tolist()
    return listed


def _describe(slots: Tensor, width: int, requests: Sequence[int]) -> tuple[list[int], list[int]]:
    """Member position and request index of each row."""
    listed: list[int] = slots.tolist()
    return [slot // width for slot in listed], [requests[slot % width] for slot in listed]


def _busiest(going: Tensor, members: int) -> int:
    """The largest number of unfinished rows that any member has."""
    return int(going.view(members, -1).sum(1).max())


def _keep_going_first(going: Tensor, members: int, width: int) -> Tensor:
    """Row indices, `width` of each member: its unfinished rows in order, then finished ones to fill up."""
    by_member = going.view(members, -1)
    order = torch.argsort((~by_member).long(), dim=1, stable=True)[:, :width]
    kept = order.sort(dim=1).values + torch.arange(members).unsqueeze(1) * by_member.shape[1]
    return kept.reshape(-1)


def _distinct(prompts: Sequence[Tokens]) -> Prompts:
    """Each prompt once, in order of first appearance."""
    index: dict[Tokens, int] = {}
    of_row = tuple(index.setdefault(prompt, len(index)) for prompt in prompts)
    return Prompts(tuple(index), of_row)


def _until_end(tokens: Sequence[int], ends: frozenset[int]) -> Tokens:
    for position, token in enumerate(tokens):
        if token in ends:
            return tuple(tokens[: position + 1])
    return tuple(tokens)


def greedy(logits: Tensor, members: Sequence[int], requests: Sequence[int], position: int) -> Tensor:
    """The most probable token, the lowest id among equals."""
    return torch.argmax(logits, dim=1)


