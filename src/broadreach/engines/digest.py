"""The digest of served weights: the noise room's digest of their values as float32."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from broadreach.noise.update import digest


class _AsFloat32(Mapping[str, NDArray[np.float32]]):
    """Tensors seen as float32 arrays, one at a time (exact for every served type)."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        return self._tensors[name].detach().to("cpu", torch.float32).numpy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def served_digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """xxh3-128 of served weights by canonical name; in float32 it equals `noise.update.digest` of the centre."""
    return digest(_AsFloat32(tensors))
