"""Which code trains a run or a stage; it loads when it is chosen, since TRL alone takes seconds to import."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from broadreach.config import Config
from broadreach.runs.folder import RunFolder
from broadreach.training.reporter import Reporter


class Train(Protocol):
    """Trains a run, or goes on with it."""

    def __call__(self, config: Config, run: RunFolder, reporter: Reporter, origin: Path | None = None) -> None:
        """`origin`: the base model's directory of the composition that the run is a later stage of."""


def training_method(name: str) -> Train:
    """The `train` function of "es" or "grpo"."""
    if name == "grpo":
        from broadreach.training import grpo

        return grpo.train
    from broadreach.training import es

    return es.train
