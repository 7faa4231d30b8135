"""From TRL's events to our run folder: a metrics line an update, a marked checkpoint every so many."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from broadreach.config import Config
from broadreach.noise.update import digest
from broadreach.runs.folder import RunFolder
from broadreach.training.curve import Curve
from broadreach.training.drift import DriftMeter
from broadreach.training.grpo_checkpoint import Checkpoint, finish
from broadreach.training.grpo_plan import GrpoPlan
from broadreach.training.grpo_record import IdleGroups, update_line
from broadreach.training.grpo_rollout import Rollouts
from broadreach.training.metrics import MetricsFile, peak_memory_mb
from broadreach.training.reporter import Reporter


class Session:
    """Listens to one training; optimiser steps are counted from the start of the run."""

    def __init__(
        self,
        config: Config,
        run: RunFolder,
        total: int,
        plan: GrpoPlan,
        rollouts: Rollouts,
        metrics: MetricsFile,
        drift: DriftMeter,
        curve: Curve,
        reporter: Reporter,
        base_digest: str,
    ) -> None:
        self.config, self.run, self.plan, self.total = config, run, plan, total
        self.rollouts, self.metrics, self.drift, self.reporter = rollouts, metrics, drift, reporter
        self.curve = curve
        self.base_digest = base_digest
        self.idle = IdleGroups(config)
        self.logs: list[Mapping[str, Any]] = []
        self.began = 0.0

    @property
    def middle(self) -> int | None:
        """The update whose weights are kept for compositions."""
        return self.total // 2 if self.config.grpo.keep_middle and self.total > 1 else None

    def save_due(self, update: int) -> bool:
        """Whether a checkpoint follows this update."""
        return update % self.config.run.snapshot_every == 0 or update in (self.total, self.middle)

    def begin(self, optimiser_step: int) -> None:
        """An optimiser step begins."""
        if optimiser_step % self.plan.steps == 0:
            self.logs = []
            self.began = self.rollouts.began = time.perf_counter()

    def logged(self, optimiser_step: int, logs: Mapping[str, Any]) -> None:
        """An optimiser step ended with these logs; the last one of an update writes its line."""
        if "grad_norm" not in logs:
            return
        self.logs.append(dict(logs))
        if optimiser_step % self.plan.steps == 0:
            self._record(optimiser_step // self.plan.steps)

    def saved(self, optimiser_step: int) -> None:
        """TRL wrote a checkpoint."""
        update = optimiser_step // self.plan.steps
        made = Checkpoint(update, optimiser_step, self.plan.steps, self.base_digest, digest(self.rollouts.weights()))
        finish(self.run, made, self.config.run.keep_snapshots, self.middle)

    def _record(self, update: int) -> None:
        applied = time.perf_counter()
        evaluation = self.rollouts.evaluation
        assert evaluation is not None
        line = update_line(update, evaluation, self.rollouts.problem_ids, self.logs, self.config, self.plan)
        line["seconds"]["update"] = applied - self.began - sum(evaluation.seconds.values())
        line["drift"] = self.drift.relative(self.rollouts.weights(), self.save_due(update))
        line["peak_memory_mb"] = peak_memory_mb()
        line["seconds"]["other"] = time.perf_counter() - applied
        line["seconds"]["total"] = time.perf_counter() - self.began
        self.curve.after(update, self.rollouts.weights())
        line["seconds"].update(self.curve.take_seconds())
        self.metrics.append(line)
        self.reporter.update(line)
        self.idle.check(line, evaluation, self.reporter)


def listener(session: Session) -> Any:
    """A callback of transformers' Trainer that passes its events on to the session."""
    from transformers import TrainerCallback

    class Listener(TrainerCallback):
        """Passes TRL's events on."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            session.begin(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            update, inside = divmod(state.global_step, session.plan.steps)
            control.should_save = inside == 0 and session.save_due(update)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            session.logged(state.global_step, logs or {})

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            session.saved(state.global_step)

    return Listener()
