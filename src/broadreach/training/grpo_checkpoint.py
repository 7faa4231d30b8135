"""Checkpoints of GRPO: plain Hugging Face directories with the optimiser beside the weights, and which one to go on
from.

The responses of an update are not stored, so a run resumes exactly only where an update ended (a generation boundary).
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.training.reporter import Reporter
from broadreach.types import Centre, UserError

MARKER = "broadreach.json"
"""Written last: a directory without it is a save that was cut short."""
STATE_FILES = ("optimizer.pt", "scheduler.pt", "scaler.pt", "rng_state.pth", "training_args.bin")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What the marker of a checkpoint says."""

    update: int
    optimiser_step: int
    steps_per_update: int
    base_digest: str
    """xxh3-128 of the float32 weights that the run started from."""
    digest: str
    """xxh3-128 of these weights."""


def checkpoints_folder(run: RunFolder) -> Path:
    """Where a run keeps them."""
    return run.path / "checkpoints"


def checkpoint_dir(run: RunFolder, optimiser_step: int) -> Path:
    """TRL names a checkpoint by its optimiser step."""
    return checkpoints_folder(run) / f"checkpoint-{optimiser_step}"


def complete(run: RunFolder) -> list[Checkpoint]:
    """Every complete checkpoint, oldest first."""
    found = []
    for path in checkpoints_folder(run).glob(f"checkpoint-*/{MARKER}"):
        try:
            found.append(Checkpoint(**json.loads(path.read_text())))
        except (ValueError, TypeError):
            continue
    return sorted(found, key=lambda checkpoint: checkpoint.update)


def resumable(run: RunFolder, steps_per_update: int, base_digest: str, reporter: Reporter) -> Checkpoint | None:
    """The newest checkpoint to go on from, None for a new start; incomplete ones are removed.

    UserError when one was saved in the middle of an update, or the run started from other weights.
    """
    marked = complete(run)
    _remove_incomplete(run, steps_per_update, {checkpoint.optimiser_step for checkpoint in marked}, reporter)
    ready = [c for c in marked if (checkpoint_dir(run, c.optimiser_step) / STATE_FILES[0]).exists()]
    if not ready:
        return None
    newest = ready[-1]
    if newest.base_digest != base_digest:
        raise UserError(
            f"the base model changed since the run in {run.path} started: its weights have digest {base_digest}, the "
            f"checkpoints were made from {newest.base_digest}; put the old weights back, or start a new run"
        )
    return newest


def kept_weights(run: RunFolder, update: int | None, model_dir: Path) -> Centre:
    """The float32 weights after `update` (None: the newest checkpoint); 0 is the base, read from `model_dir`.

    UserError when that update was not kept, or its weights are no longer those that were saved.
    """
    kept = complete(run)
    if update == 0 or (update is None and not kept):
        return load_centre(model_dir)
    found = [c for c in kept if c.update == (kept[-1].update if update is None else update)]
    if not found:
        raise UserError(
            f"GRPO has no ledger, and {run.path} has no weights of update {update} "
            f"(kept: {', '.join(str(n) for n in (0, *(c.update for c in kept)))}); "
            "a smaller run.snapshot_every and a larger run.keep_snapshots keep more"
        )
    place = checkpoint_dir(run, found[0].optimiser_step)
    centre = load_centre(place)
    if digest(centre) != found[0].digest:
        raise UserError(f"{place} was changed after it was saved: its digest is not {found[0].digest}; restore it")
    return centre


def finish(run: RunFolder, checkpoint: Checkpoint, keep: int, middle: int | None) -> None:
    """Sync a checkpoint that TRL wrote, mark it complete, and keep only the newest `keep`.

    Of the update `middle` the weights stay, without the optimiser.
    """
    folder = checkpoint_dir(run, checkpoint.optimiser_step)
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    write_atomically(folder / MARKER, json.dumps(asdict(checkpoint)) + "\n")
    older = [c for c in complete(run) if c.update < checkpoint.update]
    for old in older[: max(0, len(older) + 1 - keep)]:
        place = checkpoint_dir(run, old.optimiser_step)
        if old.update != middle:
            shutil.rmtree(place, ignore_errors=True)
            continue
        for name in STATE_FILES:
            (place / name).unlink(missing_ok=True)


def _remove_incomplete(run: RunFolder, steps_per_update: int, marked: set[int], reporter: Reporter) -> None:
    for folder in sorted(checkpoints_folder(run).glob("checkpoint-*")):
        name = folder.name.removeprefix("checkpoint-")
        if not name.isdigit():
            continue
        step = int(name)
        if step % steps_per_update and (folder / "trainer_state.json").exists():
            raise UserError(
                f"{folder} was saved after optimiser step {step}, inside update {step // steps_per_update + 1} "
                f"({steps_per_update} steps an update): its responses are not stored, so going on from there would not "
                "be the same run; remove that directory to resume from the end of an update"
            )
        if step not in marked:
            reporter.warn(f"{folder}: the save was cut short; it is removed")
            shutil.rmtree(folder, ignore_errors=True)
