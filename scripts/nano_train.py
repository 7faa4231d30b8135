"""Pretraining of broadreach-nano: next-token loss on the responses, batches of similar length."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
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
    rate: float,
    label: str,
    last: float = 0.02,
) -> None:
    """`steps` AdamW steps with warm-up and a cosine from `rate` down to `last * rate`; changes `model`.

    Two threads take half a batch each, on two copies that share their weights: less waiting than two threads inside
    each small operation, and the same numbers whatever the machine's load.
    """
    copies = [model, _sharing(model)]
    warm = min(100, steps // 10)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.05)
    started, total = time.monotonic(), 0.0
    with ThreadPoolExecutor(len(copies)) as threads:
        for step in range(steps):
            cosine = 0.5 * (1 + math.cos(math.pi * max(0, step - warm) / max(1, steps - warm)))
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / warm) * (last + (1 - last) * cosine)
            ids, targets = next(data)
            scale = 1.0 / int((targets != -100).sum())
            parts = list(zip(copies, ids.chunk(2), targets.chunk(2), strict=True))
            total += sum(threads.map(lambda part: _half(*part, scale), parts))
            for ours, theirs in zip(*(copy.parameters() for copy in copies), strict=True):
                ours.grad.add_(theirs.grad)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % 50 == 0:
                seconds = time.monotonic() - started
                print(f"{label} {step + 1}/{steps} loss {total / 50:.4f} {seconds:.0f} s", flush=True)
                total = 0.0


def _sharing(model: LlamaForCausalLM) -> LlamaForCausalLM:
    copy = LlamaForCausalLM(model.config)
    for ours, theirs in zip(model.parameters(), copy.parameters(), strict=True):
        theirs.data = ours.data
    return copy


def _half(model: LlamaForCausalLM, ids: torch.Tensor, targets: torch.Tensor, scale: float) -> float:
    """Leaves the gradient of the summed loss times `scale` in `model`; returns that loss."""
    model.zero_grad(set_to_none=True)
    kept = targets[:, 1:] != -100
    hidden = model.model(input_ids=ids[:, :-1]).last_hidden_state[kept]
    loss = functional.cross_entropy(model.lm_head(hidden), targets[:, 1:][kept], reduction="sum") * scale
    loss.backward()
    return loss.item()
