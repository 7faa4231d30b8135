"""From what the user wrote (a run folder, a Hugging Face directory, a model name) to tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broadreach.types import UserError

if TYPE_CHECKING:
    from broadreach.analysis.drift import Weights
    from broadreach.runs.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Model:
    """Weights and where they came from."""

    name: str
    tensors: Weights
    run: RunFolder | None

    def facts(self) -> Mapping[str, Any]:
        """For the settings of an analysis."""
        return {"path": self.name, "run": self.run is not None, "parameters": sum(int(t.size) for t in _all(self))}


def open_model(target: str, step: int | None = None) -> Model:
    """A run's weights after update `step` (default: the last; rebuilt in memory), or a directory's, left on the disk.

    UserError for a step the run does not have, or one of a directory, which has no steps.
    """
    from broadreach.analysis.drift_files import open_weights
    from broadreach.models.locate import locate
    from broadreach.runs.folder import RunFolder
    from broadreach.training.rebuild import rebuild

    run = RunFolder(target)
    if run.exists():
        return Model(target if step is None else f"{target} (update {step})", rebuild(run, step)[0], run)
    if step is not None:
        raise UserError(f"{target} is not a run folder: a step needs one")
    directory = Path(target).expanduser()
    if not (directory.is_dir() and any(directory.glob("*.safetensors"))):
        directory = locate(target)
    return Model(target, open_weights(directory), None)


def base_model(run: RunFolder) -> Model:
    """The base weights of a run."""
    from broadreach.analysis.drift_files import open_weights
    from broadreach.models.locate import locate

    path = run.config().model.path
    return Model(path, open_weights(locate(path)), None)


def default_out(out: str | None, run: RunFolder | None, label: str) -> Path:
    """--out, or RUN/analysis, or runs/analysis/LABEL."""
    from broadreach.runs.files import file_name

    if out is not None:
        return Path(out)
    return run.path / "analysis" if run is not None else Path("runs/analysis") / file_name(label)


def _all(model: Model) -> list[Any]:
    return list(model.tensors.values())
