"""The weights of any step of a run, from the base model and the ledger alone."""

from __future__ import annotations

from broadreach.models.locate import locate
from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.checkpoint import check_base, replay
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import LedgerContents, read_ledger
from broadreach.types import Centre, UserError


def rebuild(run: RunFolder, step: int | None = None) -> tuple[Centre, int]:
    """The float32 centre after update `step` (default: the last), and how many digests were checked.

    UserError when the run has no such step, or base, ledger and noise do not give the recorded digests.
    """
    config = run.config()
    contents = finished_part(run)
    last = len(contents.entries)
    step = last if step is None else step
    if not 0 <= step <= last:
        raise UserError(f"run {run.path} has updates 0 (the base) to {last}: there is no update {step}")
    centre = load_centre(locate(config.model.path))
    assert contents.header is not None
    check_base(centre, contents.header, run.path)
    entries = contents.entries[:step]
    anchored = any(entry.record.update is not None and entry.record.update.anchor_decay for entry in entries)
    base = {name: array.copy() for name, array in centre.items()} if anchored else None
    replay(centre, entries, contents.header, base)
    return centre, sum(entry.digest is not None for entry in entries)


def served_digest(run: RunFolder, step: int | None = None) -> str:
    """Digest of the float32 centre after `step`."""
    return digest(rebuild(run, step)[0])


def finished_part(run: RunFolder) -> LedgerContents:
    """The ledger; UserError when the folder has none."""
    contents = read_ledger(run.ledger_file)
    if contents.header is None:
        raise UserError(f"{run.path} has no ledger yet: the run stopped before its first update")
    return contents
