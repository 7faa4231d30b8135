"""A random sample of coordinates of every tensor: under the null, coordinates move independently, so it suffices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.drift_files import StoredTensor
from broadreach.types import UserError

GROUPS = 8
"""Groups of blocks, each a sample of its own: their scatter is the sampling error."""
BLOCK = 16
"""Coordinates that lie side by side and are read at once."""
SMALLEST = GROUPS * BLOCK
"""Coordinates taken from a tensor at least (or all of it)."""
SIZE = 32_768
"""Coordinates in all, unless many tensors raise it."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Coordinates of one model with the number that each stands for."""

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    """Elements of each tensor."""
    values: NDArray[np.float32]
    """Weights of the sampled coordinates [coordinates]."""
    cell: NDArray[np.int64]
    """tensor * GROUPS + group of each coordinate."""
    weight: Floats
    """Coordinates of the model that each one stands for."""

    @property
    def tensor(self) -> NDArray[np.int64]:
        """Index of the tensor of each coordinate."""
        return self.cell // GROUPS

    def per_cell(self, values: Floats) -> Floats:
        """Estimated sums over whole tensors of a value per coordinate, one estimate a group: [tensors, GROUPS]."""
        cells = len(self.names) * GROUPS
        counts = np.bincount(self.cell, minlength=cells).reshape(-1, GROUPS)
        sums = np.bincount(self.cell, values, minlength=cells).reshape(-1, GROUPS)
        whole = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
        means = np.divide(sums, counts, out=np.broadcast_to(whole, sums.shape).copy(), where=counts > 0)
        return means * self.sizes[:, None]


def draw_sample(tensors: Mapping[str, StoredTensor | NDArray[Any]], size: int = SIZE, seed: int = 0) -> Sample:
    """Draw about `size` coordinates, shared out in proportion to the tensors' sizes; small tensors are taken whole.

    Blocks lie at random on a grid with a random phase, without repetition. UserError when there is nothing to draw.
    """
    names = tuple(sorted(name for name, tensor in tensors.items() if tensor.size))
    if not names or size < 1:
        raise UserError("the null model needs a model with tensors and a sample of at least 1 coordinate")
    total = sum(int(tensors[name].size) for name in names)
    generator = np.random.default_rng([seed, 0x5EED])
    values, cells, weights = [], [], []
    for position, name in enumerate(names):
        tensor = tensors[name]
        wanted = max(SMALLEST, round(size * int(tensor.size) / total))
        part, groups = _draw(tensor, wanted, generator)
        values.append(part)
        cells.append(position * GROUPS + groups)
        weights.append(np.full(part.size, int(tensor.size) / part.size))
    sizes = np.array([int(tensors[name].size) for name in names], np.int64)
    return Sample(names, sizes, np.concatenate(values), np.concatenate(cells), np.concatenate(weights))


def _draw(
    tensor: StoredTensor | NDArray[Any], wanted: int, generator: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Values and groups of about `wanted` coordinates, or of all."""
    size = int(tensor.size)
    if size < wanted + BLOCK:
        whole = _blocks(tensor, np.zeros(1, np.int64), size).reshape(-1)
        return whole, np.arange(size, dtype=np.int64) % GROUPS
    blocks = -(-wanted // SMALLEST) * GROUPS
    blocks = min(blocks, size // BLOCK)
    phase = int(generator.integers(0, size % BLOCK + 1))
    starts = generator.choice(size // BLOCK, blocks, replace=False) * BLOCK + phase
    groups = np.arange(blocks, dtype=np.int64) % GROUPS
    return _blocks(tensor, starts, BLOCK).reshape(-1), np.repeat(groups, BLOCK)


def _blocks(tensor: StoredTensor | NDArray[Any], starts: NDArray[np.int64], length: int) -> NDArray[np.float32]:
    if isinstance(tensor, StoredTensor):
        return tensor.blocks(starts.tolist(), length)
    flat = np.ascontiguousarray(tensor).reshape(-1)
    return flat[starts[:, None] + np.arange(length)].astype(np.float32)
