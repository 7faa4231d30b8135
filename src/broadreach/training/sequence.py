"""Methods one after the other: each stage in its own folder, handed over through a saved directory and its digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from broadreach.config import Config
from broadreach.models.locate import locate
from broadreach.models.weights import load_centre
from broadreach.noise.update import digest
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.training.curve import gather_curves
from broadreach.training.environment import environment
from broadreach.training.grpo_plan import make_plan
from broadreach.training.methods import training_method
from broadreach.training.reporter import Reporter
from broadreach.training.reuse import find_trained, take_over
from broadreach.training.setup import prepare
from broadreach.training.stages import Stage, plan_stages, read_stages, responses_per_update, write_stages
from broadreach.types import UserError


def train(config: Config, run: RunFolder, reporter: Reporter) -> None:
    """Train every stage of `train.stages`, or go on with the first that is not done (method.md, section 2).

    Every stage measures its drift from the base of the whole run.
    UserError for anything the user can mend, and when a stage would not start from what the one before it left.
    """
    planned = plan_stages(config, run)
    _check_settings(config, planned)
    with run.locked():
        run.claim(config)
        stages = _agreed(run, [stage for stage, _ in planned])
        if run.is_done():
            reporter.note(f"{run.path} is finished: all {len(stages)} stages are done")
            return
        _drop_link(run)
        reporter.note(describe(config, planned))
        total = sum(stage.updates for stage in stages)
        for position, (_, settings) in enumerate(planned):
            before = stages[position - 1] if position else None
            stage = _begin(stages[position], before, settings, run, config, reporter)
            if position == 0:
                run.write_environment(environment(stage.start or ""))
            stages[position] = stage
            write_stages(run, stages)
            if not stage.run(run).is_done():
                offset = sum(one.updates for one in stages[:position])
                told = StageReporter(reporter, stage, offset, total)
                origin = locate(config.model.path) if position else None
                training_method(stage.method)(settings, stage.run(run), told, origin)
            stages[position] = _ended(stage, run)
            write_stages(run, stages)
            _gather_curves(run, stages[: position + 1])
        _gather_metrics(run, stages)
        run.export.symlink_to(f"{stages[-1].folder}/export", target_is_directory=True)
        run.mark_done({"updates": total, "digest": stages[-1].end, "stages": [stage.updates for stage in stages]})


def describe(config: Config, planned: list[tuple[Stage, Config]]) -> str:
    """The stages and how the budget is split, in one line."""
    parts = [
        f"{stage.number} {stage.method}, {stage.updates} updates of {responses_per_update(settings)} responses"
        for stage, settings in planned
    ]
    split = {"updates": "updates, as the paper does", "responses": "responses scored"}[config.train.stage_split]
    given = any(stage.updates is not None for stage in config.train.stages)
    return f"stages: {'; '.join(parts)} (split {'as given, otherwise ' * given}by {split})"


class StageReporter:
    """Passes on what a stage says, with updates counted over the whole run."""

    def __init__(self, reporter: Reporter, stage: Stage, offset: int, total: int) -> None:
        self.reporter = reporter
        self.stage = stage
        self.offset = offset
        self.total = total

    def note(self, text: str) -> None:
        """Say which stage it is about."""
        self.reporter.note(f"stage {self.stage.number} ({self.stage.method}): {text}")

    def warn(self, text: str) -> None:
        """Say which stage it is about."""
        self.reporter.warn(f"stage {self.stage.number} ({self.stage.method}): {text}")

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Updates of the whole run."""
        self.reporter.start(self.offset + done, self.total, responses_per_update)

    def responses(self, count: int) -> None:
        """Unchanged."""
        self.reporter.responses(count)

    def update(self, metrics: Mapping[str, Any]) -> None:
        """The stage's line, numbered over the whole run."""
        self.reporter.update(numbered(metrics, self.stage, self.offset))


def numbered(line: Mapping[str, Any], stage: Stage, offset: int) -> dict[str, Any]:
    """A stage's metrics line as one of the whole run."""
    return {**line, "step": int(line["step"]) + offset, "stage": stage.number, "method": stage.method}


def _begin(
    stage: Stage, before: Stage | None, settings: Config, run: RunFolder, config: Config, reporter: Reporter
) -> Stage:
    """Check what the stage starts from, and take it over from a run that already trained it."""
    start = digest(load_centre(locate(settings.model.path)))
    name = f"stage {stage.number} ({stage.method})"
    if before is not None and start != before.end:
        raise UserError(
            f"{name} would start from {settings.model.path}, whose weights have digest {start}, but stage "
            f"{before.number} ({before.method}) left {before.end}: that directory was changed; put it back, or start "
            "a new run"
        )
    if stage.start not in (None, start):
        raise UserError(f"{name} started from weights with digest {stage.start}, {settings.model.path} now has {start}")
    stage = replace(stage, start=start)
    folder = stage.run(run)
    if before is None and config.train.reuse and not folder.exists():
        source = find_trained(settings, run)
        if source is not None:
            reporter.note(f"{name}: {source.path} already has these {stage.updates} updates; they are reused")
            take_over(settings, folder, source)
            stage = replace(stage, reused=str(source.path))
    return stage


def _ended(stage: Stage, run: RunFolder) -> Stage:
    return stage if stage.end else replace(stage, end=digest(load_centre(stage.run(run).export)))


def _agreed(run: RunFolder, planned: list[Stage]) -> list[Stage]:
    """The recorded stages, or the planned ones of a new run; UserError when they differ."""
    recorded = read_stages(run)
    if not recorded:
        return planned
    shape = [(stage.method, stage.updates) for stage in recorded]
    wanted = [(stage.method, stage.updates) for stage in planned]
    if shape != wanted:
        had, asked = (", ".join(f"{method} {updates}" for method, updates in one) for one in (shape, wanted))
        raise UserError(
            f"{run.path} has the stages {had}, the settings now ask for {asked}: a stage cannot change after the next "
            "one has begun; start a new run with --set run.dir=..."
        )
    return recorded


def _check_settings(config: Config, planned: list[tuple[Stage, Config]]) -> None:
    """Find mistakes in later stages before the first one trains."""
    for stage, settings in planned:
        settings = settings.model_copy(update={"model": config.model})
        prepared = prepare(settings)
        if stage.method == "grpo":
            make_plan(settings, prepared)


def _gather_metrics(run: RunFolder, stages: list[Stage]) -> None:
    lines: list[str] = []
    offset = 0
    for stage in stages:
        rows = map(json.loads, stage.run(run).metrics_file.read_text().splitlines())
        lines += [json.dumps(numbered(row, stage, offset)) + "\n" for row in rows]
        offset += stage.updates
    write_atomically(run.metrics_file, "".join(lines))


def _gather_curves(run: RunFolder, stages: list[Stage]) -> None:
    offsets = [sum(one.updates for one in stages[:position]) for position in range(len(stages))]
    keys = [{"stage": stage.number, "method": stage.method} for stage in stages]
    gather_curves(run, list(zip([stage.run(run) for stage in stages], offsets, keys, strict=True)))


def _drop_link(run: RunFolder) -> None:
    run.done_file.unlink(missing_ok=True)
    run.export.unlink(missing_ok=True)
