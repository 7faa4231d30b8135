"""Evaluation during training: fixed held-out problems at chosen updates, outside of everything that training draws."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from broadreach.config import Config, TaskSettings
from broadreach.engines.base import Engine
from broadreach.engines.select import build_engine
from broadreach.evaluation.evaluate import Evaluator, headline, prepare_evaluation
from broadreach.evaluation.matched import curve_folder
from broadreach.evaluation.plan import evaluation_plan
from broadreach.evaluation.store import read_header
from broadreach.noise.update import digest
from broadreach.runs.files import write_atomically
from broadreach.runs.folder import RunFolder
from broadreach.training.metrics import MetricsFile
from broadreach.training.reporter import Reporter
from broadreach.types import Centre, UserError

LARGE_K = (16, 32)


class Curve:
    """The evaluations of one run; use it in a `with` block. Without `eval.curve_*` settings it does nothing.

    `engine` is the one that trains (None: one is built); `serves_centre` says that it serves the weights already.
    Sampling noise is keyed, engines restore what they serve, and the global random states are put back: training is
    the same, bit for bit, with and without it.
    """

    def __init__(
        self,
        config: Config,
        run: RunFolder,
        total: int,
        model_dir: Path,
        reporter: Reporter,
        engine: Engine | None = None,
        serves_centre: bool = False,
    ) -> None:
        self.config, self.run, self.total, self.model_dir, self.reporter = config, run, total, model_dir, reporter
        self.engine, self.serves_centre = engine, serves_centre
        self.file = MetricsFile(curve_file(run))
        self._evaluators: dict[str, Evaluator] = {}
        self._seen: set[tuple[int, str]] = set()
        self._seconds = 0.0
        self._stack = ExitStack()

    def __enter__(self) -> Curve:
        wanted = self.config.eval
        if not wanted.curve_every and not wanted.curve_at:
            return self
        with untouched_random_state():
            for name in dict.fromkeys(wanted.curve_tasks or (self.config.task.name,)):
                evaluator = self._stack.enter_context(prepare_evaluation(_plan(self.config, name), self.model_dir))
                evaluator.header()  # refuses settings that make no sense before anything is trained
                self._evaluators[name] = evaluator
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rewind(self, last_step: int) -> None:
        """Forget the lines of updates that the run does not have (their stores stay, and are not drawn again)."""
        self.file.rewind(last_step)
        self._seen = {(line["step"], line["task"]) for line in read_curve(self.run)}

    def due(self, step: int) -> bool:
        """Whether the weights after this update are evaluated."""
        wanted = self.config.eval
        every = wanted.curve_every
        return step in wanted.curve_at or (every > 0 and (step % every == 0 or step == self.total))

    def after(self, step: int, centre: Centre) -> None:
        """Evaluate the weights after update `step` (0: the base) if they are due and not evaluated yet."""
        left = [name for name in self._evaluators if self.due(step) and (step, name) not in self._seen]
        if not left:
            return
        began = time.perf_counter()
        with untouched_random_state():
            engine = self._serving(centre)
            for name in left:
                self._evaluators[name].put(centre, engine)
                self._evaluate(step, name, self._evaluators[name], digest(centre))
        self._seconds += time.perf_counter() - began

    def take_seconds(self) -> dict[str, float]:
        """`{"evaluation": wall seconds}` since the last call, for the line of an update; empty when there were none."""
        spent, self._seconds = self._seconds, 0.0
        return {"evaluation": spent} if spent else {}

    def _serving(self, centre: Centre) -> Engine:
        if self.engine is None:
            self.engine = build_engine(self.config.engine, self.model_dir, self.config.model.dtype)
        if not self.serves_centre:
            self.engine.load(centre)
        return self.engine

    def _evaluate(self, step: int, name: str, evaluator: Evaluator, model_digest: str) -> None:
        began = time.perf_counter()
        folder = curve_folder(self.run.path, name) / f"step-{step}"
        _remove_other(folder, evaluator)
        siblings = self.run.path.resolve().parent if step == 0 else None
        found = evaluator.measure(folder, siblings=siblings)
        metrics, entropy = found.metrics, found.entropy
        assert entropy is not None
        samples = metrics["samples"]
        larger = [k for k in LARGE_K if k <= samples] or [samples]
        line = {
            "step": step,
            "task": name,
            "problems": metrics["problems"],
            "samples": samples,
            "temperature": metrics["settings"]["temperature"],
            "pass_at_1": metrics["pass_at_1"],
            "pass_at_k": {str(k): _interval(metrics["pass_at_k"][k - 1]) for k in larger if k > 1},
            "entropy": _interval(entropy["own"]),
            "format_rate": metrics["format_rate"],
            "mean_tokens": metrics["mean_tokens"],
            "seconds": time.perf_counter() - began,
            "model_digest": model_digest,
        }
        self.file.append(line)
        self._seen.add((step, name))
        self.reporter.note(f"after update {step}, {name}: {headline(metrics)}  entropy {entropy['own']['value']:.3f}")


def curve_file(run: RunFolder) -> Path:
    """One line an evaluated (update, task)."""
    return run.path / "curve.jsonl"


def read_curve(run: RunFolder) -> list[dict[str, Any]]:
    """The lines of a run; empty when it was not evaluated during training."""
    path = curve_file(run)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def copy_curve(source: RunFolder, target: RunFolder, updates: int) -> None:
    """Take over the evaluations of a run's first updates, for a stage that is not trained again."""
    lines = [line for line in read_curve(source) if line["step"] <= updates]
    for line in lines:
        place = curve_folder(source.path, line["task"]) / f"step-{line['step']}"
        if place.is_dir():
            shutil.copytree(place, curve_folder(target.path, line["task"]) / place.name, dirs_exist_ok=True)
    if lines:
        _write_lines(target, lines)


def gather_curves(run: RunFolder, stages: Sequence[tuple[RunFolder, int, dict[str, Any]]]) -> None:
    """The evaluations of all stages as those of the whole run: (stage folder, updates before it, keys to add) each.

    The stores stay with the stages, links lead to them. The start of a stage is the end of the one before: it is
    listed once.
    """
    seen: dict[tuple[int, str], dict[str, Any]] = {}
    for stage, offset, keys in stages:
        for line in read_curve(stage):
            moved = {**line, "step": line["step"] + offset, **keys}
            if (moved["step"], line["task"]) in seen:
                continue
            seen[moved["step"], line["task"]] = moved
            place = curve_folder(stage.path, line["task"]) / f"step-{line['step']}"
            link = curve_folder(run.path, line["task"]) / f"step-{moved['step']}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(place.resolve(), link.parent.resolve()), target_is_directory=True)
    if seen:
        _write_lines(run, list(seen.values()))


@contextmanager
def untouched_random_state() -> Iterator[None]:
    """Put the global random states of torch, numpy and Python back at the end."""
    ours, theirs = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(ours)
        np.random.set_state(theirs)


def _plan(config: Config, name: str) -> Any:
    own = name == config.task.name
    wanted = config.eval
    return replace(
        evaluation_plan(config),
        task=config.task if own else TaskSettings(name=name, shots=config.task.shots),
        samples=wanted.curve_samples,
        problems=wanted.curve_problems,
        greedy=False,
        entropy=True,
    )


def _remove_other(folder: Path, evaluator: Evaluator) -> None:
    """Responses of other weights or settings: left by a run that was stopped here and went on differently."""
    try:
        if read_header(folder / "samples.jsonl") == evaluator.header():
            return
    except UserError:
        return
    shutil.rmtree(folder)


def _interval(entry: dict[str, Any]) -> dict[str, float]:
    return {name: float(entry[name]) for name in ("value", "low", "high")}


def _write_lines(run: RunFolder, lines: Sequence[dict[str, Any]]) -> None:
    write_atomically(curve_file(run), "".join(json.dumps(line) + "\n" for line in lines))
