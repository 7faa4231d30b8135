"""Several runs in processes of their own: in parallel, in order of need; one failure does not stop the others."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from broadreach.config import Config
from broadreach.runs.files import explained_disk_errors
from broadreach.types import UserError

CHILD = "broadreach.experiments.child"
"""What runs a job: `broadreach` in a process that dies with this one."""
STOP_AFTER = 20.0
"""Seconds an interrupted child gets to put its run folder in order."""


@dataclass(frozen=True, slots=True)
class Job:
    """One command of `broadreach` that says JSON lines."""

    label: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: its commands, and the cells that should have ended before it begins."""

    name: str
    jobs: tuple[Job, ...]
    after: tuple[str, ...] = ()
    config: Config | None = None
    """Settings of its training, where it trains."""
    memory: int = 0
    """Most bytes that one of its processes takes (`memory.sized`); 0: unknown."""


class Watcher(Protocol):
    """Hears what the cells do; called from several threads, one call at a time."""

    def started(self, cell: Cell, job: Job) -> None:
        """A job of a cell begins."""

    def event(self, cell: Cell, job: Job, event: Mapping[str, Any]) -> None:
        """A JSON line of a child."""

    def ended(self, cell: Cell, failure: str | None) -> None:
        """A cell has ended; `failure` is the last line it said on standard error."""


def run_cells(
    cells: Sequence[Cell], workers: int, logs: Path, watcher: Watcher, *, memory: float = math.inf
) -> dict[str, str]:
    """Run all cells, `workers` at a time, each with its share of the cores; returns the failures by name.

    A cell begins only when the running ones leave it room in `memory` bytes. What a cell says goes to logs/NAME.txt. An
    interrupt reaches every child once, and each stops as `broadreach train` does: nothing is lost. UserError, before
    anything begins, when a cell alone needs more than `memory`.
    """
    _refuse_too_large(cells, memory)
    with explained_disk_errors(logs):
        logs.mkdir(parents=True, exist_ok=True)
    crew = _Crew(logs, watcher, environment(workers))
    waiting, running, ended = list(cells), dict[Future[str | None], Cell](), dict[str, str | None]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while waiting or running:
                names = {cell.name for cell in waiting} | {cell.name for cell in running.values()}
                ready = [cell for cell in waiting if not names.intersection(cell.after)]
                for cell in _fitting(ready, workers - len(running), memory - sum(c.memory for c in running.values())):
                    waiting.remove(cell)
                    running[pool.submit(crew.run, cell)] = cell
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    ended[running.pop(future).name] = future.result()
        except BaseException:
            crew.stop()
            raise
    return {name: failure for name, failure in ended.items() if failure is not None}


def _fitting(ready: Sequence[Cell], places: int, room: float) -> list[Cell]:
    """The first cells that fit; a smaller one may pass a larger one that has to wait."""
    found: list[Cell] = []
    for cell in ready:
        if len(found) < places and cell.memory <= room:
            found.append(cell)
            room -= cell.memory
    return found


def _refuse_too_large(cells: Sequence[Cell], memory: float) -> None:
    largest = max(cells, key=lambda cell: cell.memory, default=None)
    if largest is None or largest.memory <= memory:
        return
    method = largest.config.train if largest.config else None
    grpo = method is not None and "grpo" in (method.method, *(stage.method for stage in method.stages))
    less = "a smaller grpo.micro_batch" if grpo else "a smaller train.batch, engine.rows or engine.memory_gb"
    raise UserError(
        f"{largest.name} may take {largest.memory / 1e9:.1f} GB, and {memory / 1e9:.1f} GB are allowed: {less}, fewer "
        "sampling.max_new_tokens or a smaller model needs less; --memory-gb allows more"
    )


def environment(workers: int) -> dict[str, str]:
    """This process's environment with the cores shared out: two multi-threaded processes at once slow each other."""
    share = str(max(1, (os.cpu_count() or 1) // workers))
    return {"OMP_NUM_THREADS": share, "NUMBA_NUM_THREADS": share, **os.environ}


class _Crew:
    """The children that are alive."""

    def __init__(self, logs: Path, watcher: Watcher, environment: Mapping[str, str]) -> None:
        self.logs = logs
        self.watcher = watcher
        self.environment = environment
        self.lock = threading.Lock()
        self.alive: set[subprocess.Popen[str]] = set()
        self.stopping = False

    def run(self, cell: Cell) -> str | None:
        """All jobs of a cell, up to the first that fails."""
        failure = None
        with open(self.logs / f"{cell.name}.txt", "a", encoding="utf-8") as log:
            for job in cell.jobs:
                failure = self._run_job(cell, job, log)
                if failure is not None:
                    break
        with self.lock:
            self.watcher.ended(cell, failure)
        return failure

    def stop(self) -> None:
        """Interrupt every child, and end those that do not stop by themselves."""
        with self.lock:
            self.stopping = True
            children = list(self.alive)
        for child in children:
            child.send_signal(signal.SIGINT)
        for child in children:
            try:
                child.wait(STOP_AFTER)
            except subprocess.TimeoutExpired:
                child.kill()

    def _run_job(self, cell: Cell, job: Job, log: Any) -> str | None:
        with self.lock:
            if self.stopping:
                return "stopped"
            child = subprocess.Popen(
                [sys.executable, "-m", CHILD, str(os.getpid()), *job.arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=self.environment,
                start_new_session=True,
            )
            self.alive.add(child)
        with self.lock:
            self.watcher.started(cell, job)
        last = ""
        for line in _lines(child):
            log.write(line)
            log.flush()
            event = _event(line)
            if event is None:
                last = line.strip() or last
                continue
            with self.lock:
                self.watcher.event(cell, job, event)
        code = child.wait()
        with self.lock:
            self.alive.discard(child)
        return None if code == 0 else f"{job.label} failed (exit code {code}): {last.removeprefix('broadreach: ')}"


def _lines(child: subprocess.Popen[str]) -> Iterator[str]:
    assert child.stdout is not None
    with child.stdout:
        yield from child.stdout


def _event(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
