"""Everything a report reads: the files of one run folder, never a model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadreach.evaluation.summary import Json, compare, summarise
from broadreach.evaluation.table import SampleTable, load
from broadreach.report.files import object_in, text_of
from broadreach.runs.ledger import read_ledger
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class Pair:
    """The base and the trained model on the same problems."""

    task: str
    before: SampleTable
    after: SampleTable
    before_store: Path
    after_store: Path
    before_summary: Json
    after_summary: Json
    difference: Json
    """`evaluation.summary.compare(before, after)`: after minus before."""

    @property
    def samples(self) -> int:
        """Responses a problem: the largest K."""
        return self.before.header.samples


@dataclass(frozen=True, slots=True)
class RunData:
    """One run as its files tell it."""

    path: Path
    config: Json
    config_text: str
    environment: Json
    metrics: list[Json]
    done: bool
    own: Pair | None
    """The training task."""
    held_out: list[Pair]
    random_walk: list[float] | None
    """Relative drift after each update, had the same coefficients met directions unrelated to the reward."""
    warnings: list[str]

    def setting(self, section: str, key: str, default: Any = None) -> Any:
        """One value of the resolved configuration."""
        return self.config.get(section, {}).get(key, default)


def read_run(path: str | Path) -> RunData:
    """Read a run folder, finished or not; what is missing or broken is left out and named in `warnings`.

    UserError when it is no run folder.
    """
    folder = Path(path)
    warnings: list[str] = []
    config_text = text_of(folder / "config.toml")
    if config_text is None:
        raise UserError(f"{folder} is not a run folder (no config.toml in it); `broadreach runs` lists the runs")
    try:
        config = tomllib.loads(config_text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{folder / 'config.toml'} is not valid TOML: {error}; restore it from a copy") from None
    environment = object_in(text_of(folder / "environment.json"))
    own, held_out = _evaluations(folder, warnings)
    return RunData(
        path=folder,
        config=config,
        config_text=config_text,
        environment=environment,
        metrics=list(_metrics(folder / "metrics.jsonl", warnings)),
        done=(folder / "DONE").exists(),
        own=own,
        held_out=held_out,
        random_walk=_random_walk(folder / "ledger.jsonl", environment, warnings),
        warnings=warnings,
    )


def _metrics(path: Path, warnings: list[str]) -> Iterator[Json]:
    lines = (text_of(path) or "").split("\n")
    for number, line in enumerate(lines, start=1):
        row = object_in(line)
        if "step" in row:
            yield row
        elif line and number < len(lines):
            warnings.append(f"{path.name}, line {number} could not be read and is left out")


def _evaluations(folder: Path, warnings: list[str]) -> tuple[Pair | None, list[Pair]]:
    """eval/{base,final} is the training task, eval/NAME/{base,final} another one."""
    root = folder / "eval"
    own = _pair(root, warnings)
    held_out = [_pair(sub, warnings) for sub in sorted(root.glob("*")) if sub.is_dir()]
    return own, [pair for pair in held_out if pair is not None]


def _pair(root: Path, warnings: list[str]) -> Pair | None:
    before_store = root / "base" / "samples.jsonl"
    names = [name for name in ("final", "latest") if (root / name / "samples.jsonl").exists()]
    if not before_store.exists() or not names:
        return None
    after_store = root / names[0] / "samples.jsonl"
    try:
        before, after = load(before_store), load(after_store)
        difference = compare(before, after)
    except UserError as error:
        warnings.append(f"evaluation left out: {error}")
        return None
    return Pair(
        task=before.header.task,
        before=before,
        after=after,
        before_store=before_store,
        after_store=after_store,
        before_summary=summarise(before),
        after_summary=summarise(after),
        difference=difference,
    )


def _random_walk(path: Path, environment: Json, warnings: list[str]) -> list[float] | None:
    """sqrt(parameters * sum over updates of sum_i c_i^2) / ||base||: alpha sqrt(T / N) a coordinate for z-scores."""
    parameters, norm = environment.get("parameters"), environment.get("base_norm")
    if not parameters or not norm or not path.exists():
        return None
    try:
        entries = read_ledger(path).entries
    except (UserError, OSError) as error:
        warnings.append(f"no random-walk prediction: {error}")
        return None
    variance, walk = 0.0, []
    for entry in entries:
        update = entry.record.update
        if update is not None:
            step = math.fsum(math.ldexp(c, -update.shift) ** 2 for c in update.coefficients)
            variance = (1 - update.anchor_decay) ** 2 * variance + step
        walk.append(math.sqrt(parameters * variance) / norm)
    return walk
