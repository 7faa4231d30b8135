"""Keys and values of one decode batch, in the form that Transformers models write to.

A batch has `members * width` rows, member by member. Every row of a member starts with the same `prefix` tokens,
whose keys and values are stored once per member; after them come the row's own columns, preallocated. Rows are
left-padded: `pad[row]` columns of a row's own part are empty, so that all rows write the same column at each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicLayer


@dataclass(frozen=True, slots=True)
class Prefix:
    """The tokens that all rows share: keys and values per layer, each [members, heads, length, head size]."""

    length: int
    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]


NO_PREFIX = Prefix(0, (), ())


class PrefixCache(Cache):
    """Collects the keys and values of the shared prefix, one forward pass over [members, length] tokens."""

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[DynamicLayer() for _ in range(layers)])
        self.handed: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Keep what the layer computed, and hand it straight to attention."""
        self.handed[layer_idx] = keys, values
        layer = self.layers[layer_idx]
        layer.keys, layer.values, layer.is_initialized = keys.contiguous(), values.contiguous(), True
        return keys, values

    def prefix(self) -> Prefix:
        """What was collected."""
        self.handed.clear()
        keys = tuple(layer.keys for layer in self.layers)
        return Prefix(keys[0].shape[2], keys, tuple(layer.values for layer in self.layers))


class Pool:
    """Memory for keys and values that stays from batch to batch: touching fresh pages costs more than the copying."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], Tensor] = {}

    def take(self, what: str, layer: int, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A tensor of this shape with arbitrary contents, of the type of `like`; the same memory at the next call."""
        needed = math.prod(shape)
        held = self._held.get((what, layer))
        if held is None or held.numel() < needed or held.dtype != like.dtype:
            self._held.pop((what, layer), None)
            held = self._held[what, layer] = like.new_empty(needed)
        return held[:needed].view(shape)


class RowCache(Cache):
    """The rows of one decode batch; `attention.py` reads the tensors directly."""

    def __init__(self, layers: int, members: int, width: int, capacity: int, prefix: Prefix, pool: Pool) -> None:
        super().__init__(layers=[DynamicLayer() for _ in range(layers)])
        self._pool = pool
        self.members = members
        self.width = width
        self.capacity = capacity
        self.shared = prefix
        self.length = 0
        """Columns in use before the current forward pass."""
        self.pad = torch.zeros(members * width, dtype=torch.long)
        self.padding: Tensor | None = None
        """True at the empty columns, bool [rows, 1, 1, capacity]; None when no row has any."""
        self.hidden: Tensor | None = None
        """True at what a token of a longer pass may not see, bool [rows, 1, 1, tokens, columns]."""
        self._fill: tuple[Tensor, Tensor, int] | None = None

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write the new columns into the preallocated tensors; returns the new keys and values unchanged."""
        layer = self.layers[layer_idx]
        if not layer.is_initialized:
            rows, heads = self.members * self.width, keys.shape[1]
            layer.keys = self._pool.take("keys", layer_idx, keys, (rows, heads, self.capacity, keys.shape[3]))
            layer.values = self._pool.take("values", layer_idx, values, (rows, heads, self.capacity, values.shape[3]))
            layer.is_initialized = True
        if self._fill is None:
            stop = self.length + keys.shape[2]
            layer.keys[:, :, self.length : stop] = keys
            layer.values[:, :, self.length : stop] = values
        else:
            self._scatter(layer.keys, keys)
            self._scatter(layer.values, values)
        return keys, values

    def own(self, layer_idx: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The columns that attention sees besides the prefix: the new ones alone while prompts are filled in."""
        if self._fill is not None:
            return keys, values
        layer, stop = self.layers[layer_idx], self.length + keys.shape[2]
        return layer.keys[:, :, :stop], layer.values[:, :, :stop]

    def fill(self, targets: Tensor, sources: Tensor, stop: int) -> None:
        """The next pass runs over distinct prompts: row `targets[i]` of every member gets prompt `sources[i]`,
        in the columns that end at `stop`."""
        self._fill = (targets, sources, stop)

    def filled(self, length: int, pad: Tensor) -> None:
        """All prompts are in: the next pass continues every row after column `length`."""
        self._fill, self.hidden, self.length, self.pad = None, None, length, pad
        self._mark_padding()

    def keep(self, rows: Tensor, width: int) -> None:
        """Compact to the given rows (int64, member by member, `width` of each member)."""
        for layer in self.layers:
            layer.keys = _move_to_front(layer.keys, rows, self.length)
            layer.values = _move_to_front(layer.values, rows, self.length)
        self.pad = self.pad[rows]
        self.width = width
        self._mark_padding()

    def positions(self, tokens: int) -> Tensor:
        """Position ids of the next `tokens` columns, int64 [rows, tokens]."""
        columns = torch.arange(self.length, self.length + tokens) + self.shared.length
        return columns.unsqueeze(0) - self.pad.unsqueeze(1)

    def _mark_padding(self) -> None:
        columns = torch.arange(self.capacity)
        padding = (columns < self.pad.unsqueeze(1))[:, None, None, :]
        self.padding = padding if bool(self.pad.any()) else None

    def _scatter(self, into: Tensor, new: Tensor) -> None:
        assert self._fill is not None
        targets, sources, stop = self._fill
        heads, tokens, size = new.shape[1:]
        rows = into.view(self.members, self.width, heads, self.capacity, size)
        prompts = new.view(self.members, -1, heads, tokens, size)
        rows[:, targets, :, : stop - tokens] = 0
        rows[:, targets, :, stop - tokens : stop] = prompts[:, sources]


def _move_to_front(tensor: Tensor, rows: Tensor, used: int) -> Tensor:
    """The given rows, in the memory of the first ones."""
    kept = tensor[: rows.numel()]
    kept[:, :, :used] = tensor[:, :, :used].index_select(0, rows)
    return kept
