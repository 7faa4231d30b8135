"""Writing float32 tensors to a safetensors file one by one, so that a snapshot needs no second copy in memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from broadreach.runs.files import explained_disk_errors, sync
from broadreach.types import Centre


def write_centre(centre: Centre, path: Path, metadata: dict[str, str]) -> None:
    """Write and sync `centre` (safetensors library's own `save_file` would hold all bytes twice)."""
    header: dict[str, object] = {"__metadata__": metadata}
    offset = 0
    for name, array in centre.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with explained_disk_errors(path), open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in centre.values():
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        sync(file)


def read_centre(path: Path) -> tuple[Centre, dict[str, str]]:
    """Read a snapshot back: (centre sorted by name, metadata)."""
    from safetensors import safe_open

    with safe_open(str(path), framework="np") as file:
        return {name: file.get_tensor(name) for name in sorted(file.keys())}, dict(file.metadata())
