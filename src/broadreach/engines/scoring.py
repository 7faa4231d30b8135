"""Teacher forcing: log-probability and exact entropy of every token of given responses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from broadreach.engines.base import TokenScores
from broadreach.engines.decode import Limits
from broadreach.engines.runner import Runner, Tokens, common_prefix, distinct_prompts
from broadreach.types import UserError

LOGITS = 2**22
"""Most logits (rows x tokens x vocabulary) held at once: 16 MB in float32, and a few times that on the way."""
ROWS = 64
"""Most responses scored at once."""


def score_responses(
    runner: Runner, prompts: Sequence[Sequence[int]], responses: Sequence[Sequence[int]], limits: Limits
) -> list[TokenScores]:
    """Scores of each response after its prompt at temperature 1, for a runner that serves one member.

    Natural logarithms, float32. UserError when a prompt is empty or a pair does not fit in the context.
    """
    assert runner.members == 1
    if len(prompts) != len(responses):
        raise UserError(f"score_tokens got {len(prompts)} prompts and {len(responses)} responses; give one for each")
    pairs = [(tuple(prompt), tuple(response)) for prompt, response in zip(prompts, responses, strict=True)]
    for number, (prompt, response) in enumerate(pairs):
        if not prompt or len(prompt) + len(response) > limits.context_length:
            raise UserError(
                f"score_tokens: pair {number} has {len(prompt)} prompt and {len(response)} response tokens;"
                f" it needs a prompt, and both must fit in the context of {limits.context_length}"
            )
    results: list[TokenScores | None] = [None] * len(pairs)
    if not pairs:
        return []
    prefix = common_prefix([prompt for prompt, _ in pairs])
    runner.set_prefix(prefix)
    order = sorted(range(len(pairs)), key=lambda i: (-len(pairs[i][0]), pairs[i][0], len(pairs[i][1])))
    width = max(1, min(ROWS, limits.rows))
    for first in range(0, len(order), width):
        chosen = order[first : first + width]
        batch = [(pairs[i][0][len(prefix) :], pairs[i][1]) for i in chosen]
        for index, scores in zip(chosen, _score_batch(runner, batch), strict=True):
            results[index] = scores
    return [scores for scores in results if scores is not None]


def _score_batch(runner: Runner, batch: Sequence[tuple[Tokens, Tokens]]) -> list[TokenScores]:
    longest = max(len(response) for _, response in batch)
    targets = torch.tensor([response + (0,) * (longest - len(response)) for _, response in batch], dtype=torch.long)
    logits, rows = runner.start(distinct_prompts([prompt for prompt, _ in batch]), longest)
    vocabulary = logits.shape[1]
    found = [_score(logits.unsqueeze(1), targets[:, :1])] if longest else []
    chunk = max(1, LOGITS // (vocabulary * len(batch)))
    for start in range(0, longest - 1, chunk):
        stop = min(longest - 1, start + chunk)
        found.append(_score(rows.feed(targets[:, start:stop]), targets[:, start + 1 : stop + 1]))
    joined = torch.cat(found, dim=1).numpy() if found else np.zeros((len(batch), 0, 2), np.float32)
    return [
        TokenScores(joined[row, : len(response), 0].copy(), joined[row, : len(response), 1].copy())
        for row, (_, response) in enumerate(batch)
    ]


def _score(logits: Tensor, targets: Tensor) -> Tensor:
    """[rows, tokens, vocabulary] and [rows, tokens] -> log-probabilities and entropies, float32 [rows, tokens, 2]."""
    logs = torch.log_softmax(logits.float(), dim=2)
    chosen = logs.gather(2, targets.unsqueeze(2)).squeeze(2)
    weights = logs.exp()
    entropy = -torch.where(weights > 0, weights * logs, 0.0).sum(2)
    return torch.stack([chosen, entropy], dim=2)
