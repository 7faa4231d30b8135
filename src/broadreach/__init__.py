"""Post-train language models with Evolution Strategies, and measure what it does that GRPO does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "evaluate", "load_config", "train"]

if TYPE_CHECKING:
    from broadreach.commands.api import evaluate, train
    from broadreach.config import load_config

_HOMES = {
    "load_config": "broadreach.config",
    "train": "broadreach.commands.api",
    "evaluate": "broadreach.commands.api",
}


def __getattr__(name: str) -> Any:
    """Import the public functions on first use: `import broadreach` itself loads nothing heavy."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'broadreach' has no attribute {name!r}")
