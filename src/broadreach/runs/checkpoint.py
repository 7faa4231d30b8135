"""Snapshots of the centre, and replay: base + ledger give the weights of any step, bit for bit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from broadreach.noise.advance import advance
from broadreach.noise.update import digest
from broadreach.runs.files import explained_disk_errors, sync_folder
from broadreach.runs.ledger import LedgerEntry, LedgerHeader
from broadreach.runs.safetensors_stream import read_centre, write_centre
from broadreach.types import Centre, Perturbation, UserError


def save_snapshot(folder: Path, step: int, centre: Centre, keep: int) -> None:
    """Write `folder/step-N` aside and rename it; afterwards keep only the newest `keep` snapshots."""
    target, aside = folder / f"step-{step}", folder / f".step-{step}.tmp"
    with explained_disk_errors(target):
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            write_centre(centre, aside / "centre.safetensors", {"step": str(step), "digest": digest(centre)})
            shutil.rmtree(target, ignore_errors=True)
            os.replace(aside, target)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        sync_folder(folder)
    for old in sorted(snapshot_steps(folder))[:-keep]:
        shutil.rmtree(folder / f"step-{old}", ignore_errors=True)


def snapshot_steps(folder: Path) -> list[int]:
    """Steps that have a complete snapshot."""
    if not folder.is_dir():
        return []
    names = (path.name for path in folder.iterdir() if path.name.startswith("step-"))
    return sorted(int(name.removeprefix("step-")) for name in names if name.removeprefix("step-").isdigit())


def newest_snapshot(folder: Path, entries: tuple[LedgerEntry, ...]) -> tuple[int, Centre] | None:
    """The latest snapshot that agrees with the ledger's digest; damaged or foreign ones are passed over."""
    for step in reversed(snapshot_steps(folder)):
        if step > len(entries):
            continue
        try:
            centre, metadata = read_centre(folder / f"step-{step}" / "centre.safetensors")
        except Exception:
            continue
        recorded = entries[step - 1].digest
        if metadata.get("digest") == digest(centre) and recorded in (None, metadata["digest"]):
            return step, centre
    return None


def check_base(base: Centre, header: LedgerHeader, where: Path) -> None:
    """UserError when the base model is not the one this run started from."""
    actual = digest(base)
    if actual != header.base_digest:
        raise UserError(
            f"the base model changed since the run in {where} started: its weights have digest {actual}, "
            f"the ledger was written on {header.base_digest}; put the old weights back, or start a new run"
        )


def replay(
    centre: Centre,
    entries: Iterable[LedgerEntry],
    header: LedgerHeader,
    base: Centre | None = None,
    visit: Callable[[int, Centre], None] | None = None,
) -> None:
    """Apply ledger entries to `centre` in place, checking every digest; `visit(step, centre)` is called after each.

    `base` is needed when a step decays towards it. UserError names the first step whose digest differs.
    """
    for entry in entries:
        record = entry.record
        advance(
            centre,
            record.update,
            Perturbation(header.seed, record.step, record.sigma),
            base=base,
            precision=header.precision,
            model_dtype=header.model_dtype,
            population=len(record.rewards) // (2 if header.estimator == "two_point" else 1),
            estimator=header.estimator,
        )
        if entry.digest is not None and digest(centre) != entry.digest:
            raise UserError(
                f"replay of step {record.step} gives digest {digest(centre)}, the ledger says {entry.digest}: "
                "the base model, the ledger or the noise of this version of broadreach is not the run's own"
            )
        if visit is not None:
            visit(record.step, centre)
