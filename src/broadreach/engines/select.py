"""Which engine serves a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from broadreach.config import EngineSettings
from broadreach.engines.base import Engine
from broadreach.types import UserError

SMALL = 10_000_000
"""Parameters below which serving all members at once beats one at a time on a CPU."""
USEFUL_MEMBERS = 4
"""Fewer members at once than this do not pay."""


def build_engine(
    settings: EngineSettings,
    model_dir: Path,
    dtype: str = "float32",
    precision: Literal["exact", "paper"] = "exact",
) -> Engine:
    """Build the engine that the settings ask for; call `load(centre)` before use.

    "auto" takes `population` for a small model whose parts it supports and of which several members fit in
    `memory_gb`, and `hf` otherwise. UserError when a setting cannot be served.
    """
    use_threads(settings.threads)
    if settings.kind == "fake":
        from broadreach.engines.fake import FakeEngine

        return FakeEngine(dtype=dtype, precision=precision)
    if settings.kind == "population" or (settings.kind == "auto" and precision == "exact"):
        if precision == "paper":
            raise UserError("engine.kind population has no es.precision 'paper'; set engine.kind = 'hf'")
        engine = _population(settings, model_dir, dtype)
        if engine is not None:
            return engine
    from broadreach.engines.hf import HfEngine

    return HfEngine(model_dir, dtype, rows=settings.rows, memory_gb=settings.memory_gb, precision=precision)


def _population(settings: EngineSettings, model_dir: Path, dtype: str) -> Engine | None:
    """The population engine, or None where "auto" should not take it."""
    auto = settings.kind == "auto"
    if auto and stored_parameters(model_dir) > SMALL:
        return None
    from broadreach.engines.population import PopulationEngine

    try:
        engine = PopulationEngine(model_dir, dtype, rows=settings.rows, memory_gb=settings.memory_gb)
    except UserError:
        if auto:
            return None
        raise
    return None if auto and engine.most_members < USEFUL_MEMBERS else engine


def stored_parameters(model_dir: Path) -> int:
    """Number of values in the checkpoint, from the headers of its safetensors files."""
    total = 0
    for path in model_dir.glob("*.safetensors"):
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for name, entry in header.items():
            if name != "__metadata__":
                count = 1
                for size in entry["shape"]:
                    count *= size
                total += count
    return total


def use_threads(threads: int | None) -> None:
    """Set the threads of torch and of the noise kernels; None leaves both as they are."""
    if threads is None:
        return
    import numba
    import torch

    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
