"""The base weights one tensor at a time, straight from the checkpoint's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from broadreach.models.weights import load_centre


def stream_centre(directory: Path, names: frozenset[str]) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield (name, float32 array) for every name, holding one tensor at a time.

    A checkpoint whose files use other names than the model (rare) is loaded whole instead.
    """
    from safetensors import safe_open

    files = sorted(directory.glob("*.safetensors"))
    places: dict[str, Path] = {}
    for path in files:
        with safe_open(str(path), framework="pt") as file:
            places.update(dict.fromkeys(file.keys(), path))
    if not names <= places.keys():
        yield from load_centre(directory).items()
        return
    for path in files:
        with safe_open(str(path), framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                if name in names:
                    yield name, file.get_tensor(name).float().numpy()
