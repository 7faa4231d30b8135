"""Tensors of a Hugging Face directory, read in pieces straight from its safetensors files."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.types import UserError

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_LARGEST_HEADER = 1 << 28


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor that stays on the disk."""

    name: str
    path: Path
    place: int
    """Byte of the file at which it begins."""
    stored: str
    """F64, F32, F16 or BF16."""
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Elements [start, stop) of the flattened tensor, exact, as float32 (F64: as float64)."""
        with open(self.path, "rb") as file:
            return self._read(file.fileno(), start, stop)

    def blocks(self, starts: Sequence[int], length: int) -> NDArray[np.float32]:
        """The blocks [start, start + length) for every start, as float32 [blocks, length]; reads nothing else."""
        found = np.empty((len(starts), length), np.float32)
        with open(self.path, "rb") as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            for row, start in enumerate(starts):
                found[row] = self._read(file.fileno(), int(start), int(start) + length)
        return found

    def _read(self, descriptor: int, start: int, stop: int) -> NDArray[Any]:
        kind = np.dtype(_TYPES[self.stored])
        data = os.pread(descriptor, (stop - start) * kind.itemsize, self.place + start * kind.itemsize)
        values: NDArray[Any] = np.frombuffer(data, kind)
        if values.size != stop - start:
            raise UserError(f"{self.path} ends inside of {self.name}: the file is cut short; fetch it again")
        if self.stored == "BF16":
            return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return values.astype(np.float32) if self.stored == "F16" else values


def open_weights(directory: Path) -> dict[str, StoredTensor]:
    """Every floating-point tensor of a directory by name, sorted; a head tied to the embedding is left out.

    Shards are found through model.safetensors.index.json, or are all *.safetensors. UserError when a shard is missing,
    a file is no safetensors file, or a tensor is of another type (which one).
    """
    found: dict[str, StoredTensor] = {}
    for path in _shards(directory):
        found.update(_header(path))
    if not found:
        raise UserError(f"{directory} has no tensors in *.safetensors files; give a Hugging Face model directory")
    if _ties_head(directory) and "lm_head.weight" in found and any("embed" in name or "wte" in name for name in found):
        del found["lm_head.weight"]
    return dict(sorted(found.items()))


def stored_dtype(tensors: Mapping[str, StoredTensor | NDArray[Any]]) -> str:
    """The torch name of the type that most elements are stored in: bfloat16, float16 or float32."""
    sizes: dict[str, int] = {}
    for tensor in tensors.values():
        kind = tensor.stored if isinstance(tensor, StoredTensor) else "F32"
        sizes[kind] = sizes.get(kind, 0) + int(tensor.size)
    names = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float32"}
    return names[max(sizes, key=lambda kind: sizes[kind])]


def _shards(directory: Path) -> list[Path]:
    index = directory / "model.safetensors.index.json"
    if not index.is_file():
        return sorted(directory.glob("*.safetensors"))
    names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    missing = [name for name in names if not (directory / name).is_file()]
    if missing:
        raise UserError(f"{directory} lacks the shard {missing[0]} ({len(missing)} missing); fetch it again")
    return [directory / name for name in names]


def _header(path: Path) -> dict[str, StoredTensor]:
    try:
        with open(path, "rb") as file:
            length = struct.unpack("<Q", file.read(8))[0]
            if length > _LARGEST_HEADER:
                raise ValueError("its header is too long")
            entries = json.loads(file.read(length))
    except (struct.error, ValueError) as error:
        raise UserError(f"{path} is not a safetensors file ({error}); save the model again") from None
    found = {}
    for name, entry in entries.items():
        if name == "__metadata__" or entry["dtype"][0] in "IUL" or entry["dtype"] == "BOOL":
            continue  # counters and masks are not weights
        if entry["dtype"] not in _TYPES:
            raise UserError(f"{path}: tensor {name} is stored as {entry['dtype']}; use F32, BF16, F16 or F64 weights")
        place = 8 + length + entry["data_offsets"][0]
        found[name] = StoredTensor(name, path, place, entry["dtype"], tuple(entry["shape"]))
    return found


def _ties_head(directory: Path) -> bool:
    path = directory / "config.json"
    values = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return bool(values.get("tie_word_embeddings", values.get("text_config", {}).get("tie_word_embeddings", False)))
