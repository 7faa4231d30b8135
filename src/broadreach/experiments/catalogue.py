"""Recipes shipped in the package: TOML files under experiments/recipes/, named without their ending."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from broadreach.config import Config, load_config
from broadreach.types import UserError

FOLDER = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    """Every shipped recipe."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def resolve(names: Sequence[str], overrides: Sequence[str] = ()) -> Config:
    """Merge recipes and TOML files left to right, then the overrides; a lone recipe names its run folder."""
    paths = [_find(name) for name in names]
    config = load_config(paths, overrides)
    if config.run.dir is None and paths:
        directory = f"runs/{paths[-1].stem}" + (f"-seed{config.seed}" if config.seed else "")
        config = config.model_copy(update={"run": config.run.model_copy(update={"dir": directory})})
    return config


def _find(name: str) -> Path:
    shipped = FOLDER / f"{name}.toml"
    if shipped.exists():
        return shipped
    if Path(name).exists() or name.endswith(".toml"):
        return Path(name)
    near = difflib.get_close_matches(name, recipe_names(), n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UserError(f"no recipe or file named {name}: {hint}recipes are {', '.join(recipe_names())}")
