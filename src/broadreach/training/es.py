"""Training with Evolution Strategies: the loop of es/loop.py over a fleet, recorded so that a kill loses nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from broadreach.config import Config
from broadreach.engines.select import build_engine
from broadreach.es.loop import es_step
from broadreach.fleet.base import Evaluation
from broadreach.fleet.local import LocalFleet
from broadreach.models.weights import export, parameter_count
from broadreach.runs.checkpoint import save_snapshot
from broadreach.runs.folder import RunFolder
from broadreach.runs.ledger import Ledger, LedgerEntry
from broadreach.tasks.grading import Grader
from broadreach.training.curve import Curve
from broadreach.training.drift import DriftMeter, drift_meter
from broadreach.training.environment import environment
from broadreach.training.estimate import rounded_away
from broadreach.training.metrics import MetricsFile, member_rewards, peak_memory_mb, update_metrics
from broadreach.training.reporter import Reporter
from broadreach.training.restore import restore
from broadreach.training.setup import Prepared, prepare
from broadreach.training.signal import IdleGuard, describe_base
from broadreach.types import Centre, Member, Perturbation, Sampling, StepRecord


def train(config: Config, run: RunFolder, reporter: Reporter, origin: Path | None = None) -> None:
    """Train in `run`, or go on where an earlier process stopped; UserError for anything the user can mend.

    The ledger line of an update is written after the update, so a killed process repeats at most the update it was in,
    and repeats it with the same prompts, directions and sampling noise. Drift is measured from the weights in `origin`,
    where the run is a later stage of a composition.
    """
    prepared = prepare(config)
    with run.locked():
        resumed = run.claim(config)
        if run.finished_updates() >= prepared.total:
            reporter.note(f"{run.path} is finished: all {prepared.total} updates are done")
            return
        run.reopen()
        for note in prepared.notes:
            reporter.note(note)
        centre, last_digest = _run_updates(config, run, prepared, resumed, reporter, origin)
        export(centre, prepared.model_dir, run.export, config.model.dtype)
        run.mark_done({"updates": prepared.total, "digest": last_digest})


def _run_updates(
    config: Config, run: RunFolder, prepared: Prepared, resumed: bool, reporter: Reporter, origin: Path | None
) -> tuple[Centre, str]:
    """All updates that are left; returns the last centre and its digest, and lets go of the engine."""
    with ExitStack() as stack:
        state = restore(config, run, prepared.model_dir, reporter if resumed else None)
        run.write_environment(environment(state.header.base_digest, parameter_count(state.centre), state.base_norm))
        ledger = stack.enter_context(state.open_ledger())
        metrics = MetricsFile(run.metrics_file)
        metrics.rewind(state.step)
        grader = stack.enter_context(Grader(prepared.task, config.verify))
        engine = build_engine(config.engine, prepared.model_dir, config.model.dtype, config.es.precision)
        engine.load(state.centre)
        fleet = LocalFleet(config, engine, grader, state.centre, state.base)
        drift = drift_meter(prepared.model_dir, state.base, origin)
        curve = stack.enter_context(
            Curve(config, run, prepared.total, prepared.model_dir, reporter, engine, serves_centre=True)
        )
        curve.rewind(state.step)
        loop = _Loop(config, run, prepared, fleet, ledger, metrics, drift, curve, reporter)
        if state.step == 0:
            shares = ", ".join(f"{kind} {share:.1%}" for kind, share in rounded_away(config, state.centre).items())
            reporter.note(f"coordinates that a perturbation rounds away in {config.model.dtype}: {shares}")
            describe_base(fleet, prepared, config, reporter)
        curve.after(state.step, state.centre)
        loop.run(state.step)
        return state.centre, fleet.digests()[0]


@dataclass(frozen=True, slots=True)
class _Loop:
    """The parts that one update touches."""

    config: Config
    folder: RunFolder
    prepared: Prepared
    fleet: LocalFleet
    ledger: Ledger
    metrics: MetricsFile
    drift: DriftMeter
    curve: Curve
    reporter: Reporter

    def run(self, done: int) -> None:
        """Updates done+1 to the end."""
        total = self.prepared.total
        responses = self.config.es.evaluations * self.config.train.batch
        self.reporter.start(done, total, responses)
        guard = IdleGuard(self.config)
        for step in range(done + 1, total + 1):
            self.update(step, guard)

    def update(self, step: int, guard: IdleGuard) -> None:
        """One update: evaluate, apply, record."""
        began = time.perf_counter()
        positions = self.prepared.batches.at(step)
        problems = [self.prepared.problems[i] for i in positions]
        requests = [self.prepared.requests[i] for i in positions]
        sampling = training_sampling(self.config, step)
        ids = [problem.id for problem in problems]
        seen: list[Evaluation] = []

        def evaluate(members: Sequence[Member], perturbation: Perturbation) -> tuple[float, ...]:
            seen.append(
                self.fleet.evaluate(members, perturbation, problems, requests, sampling, self.reporter.responses)
            )
            return member_rewards(seen[0], ids)

        record = es_step(self.config.es, self.config.seed, step, self.prepared.total, evaluate, self.fleet.apply)
        applied = time.perf_counter()
        record = replace(record, problems=tuple(ids))
        self._record(record, seen[0], began, applied)
        guard.check(record, seen[0], self.reporter)

    def _record(self, record: StepRecord, evaluation: Evaluation, began: float, applied: float) -> None:
        digest_due = record.step % self.config.run.digest_every == 0 or record.step == self.prepared.total
        entry = LedgerEntry(record, self.fleet.digests()[0] if digest_due else None)
        snapshot_due = record.step % self.config.run.snapshot_every == 0 or record.step == self.prepared.total
        line = update_metrics(record, evaluation)
        evaluated = sum(evaluation.seconds.values())
        line["seconds"]["update"] = applied - began - evaluated
        line["drift"] = self.drift.relative(self.fleet.centre, snapshot_due)
        line["peak_memory_mb"] = peak_memory_mb()
        line["seconds"]["other"] = time.perf_counter() - applied
        line["seconds"]["total"] = time.perf_counter() - began
        self.curve.after(record.step, self.fleet.centre)
        line["seconds"].update(self.curve.take_seconds())
        self.metrics.append(line)
        self.ledger.append(entry)
        if snapshot_due:
            save_snapshot(self.folder.snapshots, record.step, self.fleet.centre, self.config.run.keep_snapshots)
        self.reporter.update(line)


def training_sampling(config: Config, step: int) -> Sampling:
    """How responses are drawn in update `step`."""
    sampling = config.sampling
    return Sampling(
        temperature=sampling.temperature,
        max_new_tokens=sampling.max_new_tokens,
        seed=config.seed,
        step=step,
        common=sampling.seeds == "common",
    )
