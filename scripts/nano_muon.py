"""Muon: momentum, then the nearest orthogonal matrix as the step (Jordan et al. 2024), in float32.

`torch.optim.Muon` works in bfloat16, which is ten times slower than float32 on processors without bfloat16 products.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.Optimizer):
    """For the matrices inside the layers; embeddings and norms keep AdamW."""

    def __init__(
        self, matrices: Iterable[torch.nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.05
    ) -> None:
        super().__init__(list(matrices), {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[torch.nn.Parameter]] = {}
            for matrix in group["params"]:
                shapes.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in shapes.items():
                steps = orthogonal(torch.stack([self._momentum(m, group["momentum"]) for m in matrices]))
                rate = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for matrix, step in zip(matrices, steps, strict=True):
                    matrix.mul_(1 - group["lr"] * group["decay"]).sub_(step, alpha=rate)

    def _momentum(self, matrix: torch.nn.Parameter, momentum: float) -> torch.Tensor:
        """The Nesterov gradient."""
        assert matrix.grad is not None
        kept = self.state[matrix].setdefault("momentum", torch.zeros_like(matrix))
        kept.mul_(momentum).add_(matrix.grad)
        return matrix.grad + momentum * kept


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """Roughly the nearest orthogonal matrix of each of [count, rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x
