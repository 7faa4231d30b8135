"""Seeded sampling of tokens: the noise is keyed per (seed, step, member, problem, sample, position).

So a response does not depend on which other responses share its batch, beyond what the logits themselves do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from broadreach.noise.gumbel import gumbel_argmax
from broadreach.noise.philox import COMMON_MEMBER, UInt64Array, noise_key, sample_hash
from broadreach.types import UserError


@dataclass(frozen=True, slots=True, eq=False)
class SampleRows:
    """Whose noise each row of a batch of logits gets; made once per batch by `sample_rows`."""

    keys: UInt64Array
    """Philox keys [rows], from (seed, step, member)."""
    hashes: UInt64Array
    """Counter words [rows], from (problem, sample)."""

    def take(self, index: NDArray[np.int64] | Sequence[int]) -> SampleRows:
        """The rows at `index`, in that order: for batches whose finished rows are compacted away."""
        return SampleRows(self.keys[np.asarray(index)], self.hashes[np.asarray(index)])

    def __len__(self) -> int:
        return self.keys.size


def sample_rows(
    problem_ids: Sequence[str],
    samples: Sequence[int],
    members: Sequence[int],
    *,
    seed: int,
    step: int,
    common: bool = False,
) -> SampleRows:
    """The noise streams of a batch of responses: one problem id, sample number and member index per row.

    With `common`, all members share the noise of a (problem, sample). UserError if a number is out of range.
    """
    if not len(problem_ids) == len(samples) == len(members):
        raise UserError(
            f"sampling: {len(problem_ids)} problem ids, {len(samples)} sample numbers and {len(members)} members; "
            "give one of each per row"
        )
    if not all(0 <= member < COMMON_MEMBER for member in members):
        raise UserError(f"sampling: member indices must be at least 0 and below {COMMON_MEMBER}")
    effective = [COMMON_MEMBER] * len(members) if common else list(members)
    keys = {member: noise_key(seed, step, member) for member in set(effective)}
    return SampleRows(
        np.array([keys[member] for member in effective], np.uint64),
        np.array([sample_hash(p, s) for p, s in zip(problem_ids, samples, strict=True)], np.uint64),
    )


def sample_tokens(
    logits: torch.Tensor, temperature: float, rows: SampleRows, positions: Sequence[int] | NDArray[np.int64]
) -> torch.Tensor:
    """One token id per row of `logits` [rows, vocab], int64 on the same device; ties go to the lowest id.

    A token is argmax(logit / temperature + Gumbel noise), a draw from softmax(logits / temperature); temperature 0 is
    argmax(logit). `positions` [rows] counts a response's generated tokens from 0. UserError on non-finite logits.
    """
    if temperature != 0 and not 1e-6 <= temperature < float("inf"):
        raise UserError(f"sampling: temperature is {temperature}; use 0 (greedy) or a number of at least 1e-6")
    if not logits.shape[0] == len(rows) == len(positions):
        raise UserError(
            f"sampling: {logits.shape[0]} rows of logits, {len(rows)} of noise and {len(positions)} positions"
        )
    if temperature == 0:
        tokens = logits.argmax(dim=-1)
        bad = ~torch.isfinite(logits.gather(-1, tokens[:, None])[:, 0])
    else:
        at = np.asarray(positions).astype(np.uint64)
        values = logits.detach().to("cpu", torch.float32).contiguous().numpy()
        drawn = gumbel_argmax(values, float(temperature), rows.keys, rows.hashes, at)
        tokens = torch.from_numpy(drawn).to(logits.device)
        bad = tokens < 0
    if bool(bad.any()):
        raise UserError(
            f"sampling: the model's logits in row {int(bad.nonzero()[0, 0])} are not finite; the weights are broken or "
            "sigma or alpha is too large"
        )
    return tokens
