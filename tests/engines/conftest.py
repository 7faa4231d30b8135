from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import engine_models
import pytest
import torch

torch.set_num_threads(1)  # tiny models: a second thread only waits


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """tiny("llama") -> the directory of a small random model, made once."""
    made: dict[tuple[Any, ...], Path] = {}

    def build(architecture: str, **changes: Any) -> Path:
        key = (architecture, *sorted(changes.items()))
        if key not in made:
            made[key] = engine_models.save(tmp_path_factory.mktemp(architecture) / "model", architecture, **changes)
        return made[key]

    return build
