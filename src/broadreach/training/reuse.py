"""A first stage that another run has already trained: found by its settings, taken over by its files."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path

from broadreach.config import Config, flatten, to_toml
from broadreach.models.locate import locate
from broadreach.models.weights import export, load_centre
from broadreach.noise.update import digest
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import FREE_TO_CHANGE, RunFolder, find_runs
from broadreach.runs.ledger import read_ledger
from broadreach.training.curve import copy_curve
from broadreach.training.grpo_checkpoint import Checkpoint, checkpoint_dir, complete
from broadreach.training.rebuild import rebuild
from broadreach.types import UserError

OTHER_METHOD = {"es": ("grpo.",), "grpo": ("es.", "sampling.temperature", "sampling.seeds")}
LENGTH = ("train.updates", "train.epochs")
NOT_COMPARED = (*FREE_TO_CHANGE, "train.reuse", "train.stage_split", "grpo.keep_middle")


def find_trained(config: Config, parent: RunFolder) -> RunFolder | None:
    """A run beside `parent` that passed through this stage's last update with the same settings, seed and base."""
    base: str | None = None
    for run in find_runs(parent.path.parent):
        if parent.path.resolve() in (run.path.resolve(), *run.path.resolve().parents):
            continue
        try:
            if not same_training(run.config(), config):
                continue
            found = _base_of(run, config)
        except (UserError, OSError):
            continue
        if found is not None:
            base = base or digest(load_centre(locate(config.model.path)))
            if found == base:
                return run
    return None


def same_training(old: Config, new: Config) -> bool:
    """Whether a run with the settings `old` goes through the same weights as one with `new`."""
    free = (*NOT_COMPARED, *OTHER_METHOD[new.train.method], *(LENGTH if _constant(new) else ()))
    before, after = flatten(old), flatten(new)
    return all(before.get(key) == value for key, value in after.items() if not key.startswith(free))


def take_over(config: Config, stage: RunFolder, source: RunFolder) -> None:
    """Make the stage's folder what training would have left; the ledger's first lines are those bytes anyway."""
    assert config.train.updates is not None
    updates = config.train.updates
    centre, _ = rebuild(source, updates)
    with stage.locked():
        write_atomically(stage.config_file, to_toml(config))
        facts = json.loads(source.environment_file.read_text())
        stage.write_environment({**facts, "reused_from": str(source.path)})
        _copy_lines(source.metrics_file, stage.metrics_file, updates)
        copy_curve(source, stage, updates)
        if config.train.method == "es":
            _copy_lines(source.ledger_file, stage.ledger_file, 1 + updates)
        else:
            step = _checkpoint_of(source, updates).optimiser_step
            place = checkpoint_dir(stage, step)
            aside = place.with_name(f".{place.name}.partial")
            shutil.copytree(checkpoint_dir(source, step), aside, dirs_exist_ok=True)
            aside.rename(place)
        shutil.rmtree(stage.export, ignore_errors=True)
        export(centre, locate(config.model.path), stage.export, config.model.dtype)
        stage.mark_done({"updates": updates, "digest": digest(centre)})


def _base_of(run: RunFolder, config: Config) -> str | None:
    """Digest of the base of a run that reached the update, None when it did not (or its weights are gone)."""
    assert config.train.updates is not None
    if config.train.method == "es":
        contents = read_ledger(run.ledger_file)
        return (
            contents.header.base_digest if contents.header and len(contents.entries) >= config.train.updates else None
        )
    kept = [checkpoint for checkpoint in complete(run) if checkpoint.update == config.train.updates]
    return kept[0].base_digest if kept else None


def _checkpoint_of(run: RunFolder, update: int) -> Checkpoint:
    return next(checkpoint for checkpoint in complete(run) if checkpoint.update == update)


def _constant(config: Config) -> bool:
    if config.train.method == "grpo":
        return config.grpo.schedule == "constant"
    return config.es.sigma_schedule == config.es.alpha_schedule == "constant"


def _copy_lines(source: Path, target: Path, count: int) -> None:
    with open(source, encoding="utf-8") as file:
        write_atomically(target, "".join(islice(file, count)))
