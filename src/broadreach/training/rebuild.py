"""The weights of a step of a run: ES from the base model and the ledger alone, GRPO from its checkpoints."""

from __future__ import annotations

from pathlib import Path

from broadreach.models.locate import locate
from broadreach.models.weights import load_centre
from broadreach.runs.checkpoint import check_base, replay
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import LedgerContents, read_ledger
from broadreach.training.grpo_checkpoint import kept_weights
from broadreach.training.stages import read_stages
from broadreach.types import Centre, UserError


def rebuild(run: RunFolder, step: int | None = None) -> tuple[Centre, int]:
    """The float32 centre after update `step` (default: the last), and how many digests were checked.

    A GRPO run has no ledger: only the base and the updates whose checkpoints are kept. UserError when the run has no
    such step, or base, ledger and noise do not give the recorded digests.
    """
    config = run.config()
    if config.train.stages:
        return _of_stages(run, step)
    return _of_one_method(run, step, locate(config.model.path))


def _of_one_method(run: RunFolder, step: int | None, model_dir: Path) -> tuple[Centre, int]:
    if run.config().train.method == "grpo":
        return kept_weights(run, step, model_dir), 1
    contents = _finished_part(run)
    last = len(contents.entries)
    step = last if step is None else step
    if not 0 <= step <= last:
        raise UserError(f"run {run.path} has updates 0 (the base) to {last}: there is no update {step}")
    centre = load_centre(model_dir)
    assert contents.header is not None
    check_base(centre, contents.header, run.path)
    entries = contents.entries[:step]
    anchored = any(entry.record.update is not None and entry.record.update.anchor_decay for entry in entries)
    base = {name: array.copy() for name, array in centre.items()} if anchored else None
    replay(centre, entries, contents.header, base)
    return centre, sum(entry.digest is not None for entry in entries)


def _of_stages(run: RunFolder, step: int | None) -> tuple[Centre, int]:
    """Updates counted over all stages; an update between two stages is the end of the first."""
    begun = [stage for stage in read_stages(run) if stage.run(run).exists()]
    if not begun:
        raise UserError(f"{run.path} has no stage yet: the run stopped before its first update")
    model_dir, left = locate(run.config().model.path), step
    for stage in begun:
        if (left is None and stage is begun[-1]) or (left is not None and left <= stage.updates):
            return _of_one_method(stage.run(run), left, model_dir)
        left = None if left is None else left - stage.updates
        model_dir = stage.run(run).export
    raise UserError(
        f"run {run.path} has updates 0 (the base) to {sum(stage.updates for stage in begun)}: there is no update {step}"
    )


def _finished_part(run: RunFolder) -> LedgerContents:
    """The ledger; UserError when the folder has none."""
    contents = read_ledger(run.ledger_file)
    if contents.header is None:
        raise UserError(f"{run.path} has no ledger yet: the run stopped before its first update")
    return contents
