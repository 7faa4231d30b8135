"""The state a run starts or goes on from: base weights, newest snapshot, and the ledger replayed on top."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadreach.config import Config
from broadreach.models.distance import l2_norm
from broadreach.models.weights import load_centre
from broadreach.noise.philox import NOISE_FORMAT
from broadreach.noise.table import table_digest
from broadreach.noise.update import digest
from broadreach.runs.checkpoint import check_base, newest_snapshot, replay
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import Ledger, LedgerContents, LedgerHeader, read_ledger
from broadreach.training.reporter import Reporter
from broadreach.types import Centre

SMALL_MODEL = 20_000_000
"""Up to so many parameters the base is kept in memory beside the centre, to measure drift at every update."""


@dataclass(frozen=True, slots=True)
class TrainingState:
    """Where a run stands."""

    step: int
    """Updates already in the ledger."""
    centre: Centre
    base: Centre | None
    ledger_path: Path
    contents: LedgerContents
    header: LedgerHeader
    base_norm: float

    @contextmanager
    def open_ledger(self) -> Iterator[Ledger]:
        """The ledger, open for appending; a new one gets its header."""
        ledger = Ledger(self.ledger_path, self.contents).open()
        try:
            if self.contents.header is None:
                ledger.write_header(self.header)
            yield ledger
        finally:
            ledger.close()


def restore(config: Config, run: RunFolder, model_dir: Path, reporter: Reporter | None) -> TrainingState:
    """Load the base and bring it to the ledger's last step; UserError when base or ledger are not the run's own.

    `reporter` is told about a resume; None for a new run.
    """
    contents = read_ledger(run.ledger_file)
    centre = load_centre(model_dir)
    base = _copy(centre) if _needs_base(config, centre) else None
    header = contents.header or _new_header(config, centre)
    if contents.header is not None:
        check_base(centre, header, run.path)
    if contents.torn and reporter is not None:
        reporter.warn(f"{run.ledger_file}: the last line was incomplete (a write was cut short); it is dropped")
    norm = l2_norm(centre)
    step = len(contents.entries)
    snapshot = newest_snapshot(run.snapshots, contents.entries)
    if snapshot is not None:
        centre = snapshot[1]
    replay(centre, contents.entries[snapshot[0] if snapshot else 0 :], header, base)
    if reporter is not None and step:
        reporter.note(
            f"resuming after update {step} (snapshot of update {snapshot[0] if snapshot else 0} and the ledger)"
        )
    return TrainingState(step, centre, base, run.ledger_file, contents, header, norm)


def _needs_base(config: Config, centre: Centre) -> bool:
    return config.es.anchor_decay > 0 or sum(array.size for array in centre.values()) <= SMALL_MODEL


def _copy(centre: Centre) -> Centre:
    return {name: array.copy() for name, array in centre.items()}


def _new_header(config: Config, base: Centre) -> LedgerHeader:
    return LedgerHeader(
        seed=config.seed,
        base_digest=digest(base),
        noise_format=NOISE_FORMAT,
        table_digest=table_digest(),
        precision=config.es.precision,
        model_dtype=config.model.dtype,
        estimator=config.es.estimator,
    )
