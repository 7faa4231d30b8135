"""Which code trains a run or a stage; it loads when it is chosen, since TRL alone takes seconds to import."""

from __future__ import annotations

from collections.abc import Callable

from broadreach.config import Config
from broadreach.runs.folder import RunFolder
from broadreach.training.reporter import Reporter

Train = Callable[[Config, RunFolder, Reporter], None]


def training_method(name: str) -> Train:
    """The `train` function of "es" or "grpo"."""
    if name == "grpo":
        from broadreach.training import grpo

        return grpo.train
    from broadreach.training import es

    return es.train
