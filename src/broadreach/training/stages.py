"""What the stages of a sequential run are: methods, shares of the budget, settings, and what was handed over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from broadreach.config import Config, StageSettings, build_config
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.training.setup import prepare
from broadreach.types import UserError

STAGE_SEED = 1_000_003
"""Added to the seed for every stage after the first, so that no two stages share directions or sampling noise."""
FIXED = ("model.path", "run.dir", "seed", "train.method", "train.stages", "train.updates", "train.skip_batches")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage; the digests are None until it has started and ended."""

    number: int
    method: str
    folder: str
    """Name inside the run folder."""
    updates: int
    start: str | None = None
    """xxh3-128 of the float32 values of the weights it started from."""
    end: str | None = None
    """xxh3-128 of the float32 values of its export."""
    reused: str | None = None
    """The run that had already trained it."""

    def run(self, parent: RunFolder) -> RunFolder:
        """Its own run folder."""
        return RunFolder(parent.path / self.folder)


def plan_stages(config: Config, parent: RunFolder) -> list[tuple[Stage, Config]]:
    """Every stage with its settings; UserError when the budget does not divide or a setting is not a stage's own."""
    wanted = config.train.stages
    bare = [_settings(config, stage, number) for number, stage in enumerate(wanted, start=1)]
    updates = _shares(config, wanted, bare)
    planned: list[tuple[Stage, Config]] = []
    for number, (one, count) in enumerate(zip(bare, updates, strict=True), start=1):
        stage = Stage(number, one.train.method, f"stage-{number}-{one.train.method}", count)
        changes: dict[str, Any] = {"updates": count}
        changes["skip_batches"] = config.train.skip_batches + _seen(one, planned)
        if number > 1:
            changes["data_seed"] = config.seed if one.train.data_seed is None else one.train.data_seed
        values = one.model_dump()
        values["train"].update(changes)
        before = sum(updates[: number - 1])
        values["eval"]["curve_at"] = [at - before for at in config.eval.curve_at if 0 <= at - before <= count]
        values["run"]["dir"] = str(stage.run(parent).path)
        if number > 1:
            values["model"]["path"] = str(planned[-1][0].run(parent).export.resolve())
            values["seed"] = (config.seed + (number - 1) * STAGE_SEED) % 2**63
        planned.append((stage, build_config(values)))
    return planned


def responses_per_update(config: Config) -> int:
    """Responses that a full batch is answered with in one update."""
    return config.train.batch * (config.grpo.group_size if config.train.method == "grpo" else config.es.evaluations)


def stages_file(run: RunFolder) -> Path:
    """Where the stages of a run are written down."""
    return run.path / "stages.json"


def read_stages(run: RunFolder) -> list[Stage]:
    """The stages as they stand; empty for a run without."""
    path = stages_file(run)
    return [Stage(**entry) for entry in json.loads(path.read_text())] if path.exists() else []


def write_stages(run: RunFolder, stages: Sequence[Stage]) -> None:
    """Replace the record."""
    write_atomically(stages_file(run), json.dumps([asdict(stage) for stage in stages], indent=2) + "\n")


def _settings(config: Config, stage: StageSettings, number: int) -> Config:
    """The run's settings with those of the stage on top, as a run of one method."""
    values = config.model_dump()
    flat = _dotted(stage.set)
    for key in FIXED:
        if key in flat:
            raise UserError(f"train.stages, stage {number} ({stage.method}) sets {key}: {_why_not(key)}")
    if "grpo.preset" in flat:
        values["grpo"] = {}
    for key, value in flat.items():
        section, _, name = key.partition(".")
        if name and isinstance(values.get(section), dict):
            values[section][name] = value
        else:
            values[key] = value
    values["train"].update(method=stage.method, stages=())
    return build_config(values, dict.fromkeys(flat, f"stage {number}"))


def _why_not(key: str) -> str:
    if key == "model.path":
        return "a stage starts from the output of the stage before it; remove it, or start another run from that model"
    if key in ("train.method", "train.updates"):
        return f"write {key.removeprefix('train.')} beside set, not inside it"
    return "it belongs to the whole run; set it there"


def _dotted(values: Mapping[str, Any]) -> dict[str, Any]:
    """`{"task": {"name": x}}` and `{"task.name": x}` alike as `task.name -> x`."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and "." not in key:
            flat.update({f"{key}.{name}": entry for name, entry in value.items()})
        else:
            flat[key] = value
    return flat


def _shares(config: Config, wanted: Sequence[StageSettings], stages: Sequence[Config]) -> list[int]:
    open_stages = [i for i, stage in enumerate(wanted) if stage.updates is None]
    updates = [stage.updates or 0 for stage in wanted]
    if not open_stages:
        return updates
    total = config.train.updates or prepare(stages[0]).total
    if config.train.stage_split == "responses":
        share = total * responses_per_update(stages[0]) / len(wanted)
        for i in open_stages:
            updates[i] = max(1, round(share / responses_per_update(stages[i])))
        return updates
    left = total - sum(updates)
    if left < len(open_stages):
        raise UserError(
            f"train.stages: {total} updates are not enough for {len(wanted)} stages"
            f"{f', {sum(updates)} of them given' if sum(updates) else ''}; raise train.updates"
        )
    for position, i in enumerate(open_stages):
        updates[i] = left // len(open_stages) + (position < left % len(open_stages))
    return updates


def _seen(one: Config, before: Sequence[tuple[Stage, Config]]) -> int:
    """Batches of the same problems that earlier stages have used."""
    return sum(
        stage.updates for stage, other in before if other.task == one.task and other.train.batch == one.train.batch
    )
