"""The output layer in blocks of the vocabulary, which a CPU computes faster than in one product.

Measured on Zen 3, one thread, 49,152 x 576 in float32: 56 GFLOP/s against 47 with 64 rows, 46 against 34 with 32.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

BLOCK = 1024
LARGE = 16384
"""Vocabularies from here on are worth it."""


class BlockedHead(nn.Module):
    """A linear layer without bias that shares the weight of the one it replaces."""

    def __init__(self, original: nn.Linear) -> None:
        super().__init__()
        self.weight = original.weight

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        outputs = self.weight.shape[0]
        out = x.new_empty(rows.shape[0], outputs)
        for start in range(0, outputs, BLOCK):
            block = slice(start, start + BLOCK)
            torch.mm(rows, self.weight[block].t(), out=out[:, block])
        return out.view(*x.shape[:-1], outputs)


def block_head(model: nn.Module) -> None:
    """Replace a large float32 output layer on the CPU; parameters and their names stay as they are."""
    head = cast(Any, model).get_output_embeddings()
    if type(head) is not nn.Linear or head.bias is not None or head.out_features < LARGE:
        return
    if head.weight.dtype != torch.float32 or head.weight.device.type != "cpu":
        return
    for path, module in list(model.named_modules()):
        if module is head:
            parent, _, attribute = path.rpartition(".")
            setattr(model.get_submodule(parent), attribute, BlockedHead(head))
