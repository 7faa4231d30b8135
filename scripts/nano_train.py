"""Pretraining of broadreach-nano: next-token loss on the responses, batches of similar length."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import islice

import torch
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

Pair = tuple[list[int], list[int]]
"""Prompt tokens and response tokens."""


def encode(tokenizer: PreTrainedTokenizerFast, pairs: list[tuple[str, str]]) -> list[Pair]:
    """Token ids of each (question, response), the chat template's marks and the end token included."""
    questions = tokenizer([f"<|user|>{q}<|assistant|>" for q, _ in pairs])["input_ids"]
    responses = tokenizer([f"{r}<|end|>" for _, r in pairs])["input_ids"]
    return list(zip(questions, responses, strict=True))


def batches(
    tokenizer: PreTrainedTokenizerFast, corpus: Iterator[tuple[str, str]], size: int, seed: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless (ids, targets), each [size, length]; targets are -100 outside the response."""
    rng = torch.Generator().manual_seed(seed)
    while True:
        rows = encode(tokenizer, list(islice(corpus, size * 32)))
        rows.sort(key=lambda row: (len(row[0]) + len(row[1]), row))
        for start in torch.randperm(32, generator=rng).tolist():
            yield _pad(rows[start * size : (start + 1) * size], int(tokenizer.pad_token_id))


def _pad(rows: list[Pair], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(p) + len(r) for p, r in rows)
    ids = torch.full((len(rows), longest), pad)
    targets = torch.full((len(rows), longest), -100)
    for row, (prompt, response) in enumerate(rows):
        end = len(prompt) + len(response)
        ids[row, :end] = torch.tensor(prompt + response)
        targets[row, len(prompt) : end] = torch.tensor(response)
    return ids, targets


def train(
    model: LlamaForCausalLM,
    data: Iterator[tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    optimizers: list[torch.optim.Optimizer],
    label: str,
) -> None:
    """`steps` steps, each rate warmed up and then brought to zero along a cosine; changes `model`."""
    warm = min(50, steps // 10)
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    started, total = time.monotonic(), 0.0
    for step in range(steps):
        share = 0.5 * (1 + math.cos(math.pi * max(0, step - warm) / max(1, steps - warm)))
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * share * min(1.0, (step + 1) / warm)
        loss = _loss(model, *next(data))
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        total += loss.item()
        if (step + 1) % 100 == 0:
            seconds = time.monotonic() - started
            print(f"{label} {step + 1}/{steps} loss {total / 100:.4f} {seconds:.0f} s", flush=True)
            total = 0.0


def _loss(model: LlamaForCausalLM, ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    kept = targets[:, 1:] != -100
    hidden = model.model(input_ids=ids[:, :-1]).last_hidden_state[kept]
    return functional.cross_entropy(model.lm_head(hidden), targets[:, 1:][kept])
