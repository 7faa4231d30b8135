"""Grading in parallel with generation: threads that each own one killable child and one sandbox at a time.

Only what exact comparison leaves open goes through the pool; the rest is decided in `submit`. Nothing starts before
the first item that needs it. Threads, not processes, hold the children: `subprocess` starts a fresh interpreter, so
a trainer with torch and its own threads is never forked (verifiers.md, row 71).
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from broadreach.types import Score
from broadreach.verify.grading import Item, Prepared, finish, one_line, prepare
from broadreach.verify.math_equal import MathOptions
from broadreach.verify.sandbox import Sandbox, find_sandbox
from broadreach.verify.symbolic_client import CPU_SECONDS, MEMORY, WALL_SECONDS, SymbolicClient, SymbolicLimits
from broadreach.verify.verdict import Verdict

MAX_CACHED = 200_000


@dataclass(frozen=True, slots=True)
class Handle:
    """One submitted item; `GradingPool.results` turns handles into scores, in their order."""

    prepared: Prepared
    future: Future[Verdict] | None
    """None where the item was decided at once."""


class _Bench:
    """What one thread of the pool owns."""

    def __init__(self, limits: SymbolicLimits, deadline: float | None, allow_unsandboxed: bool) -> None:
        self.client = SymbolicClient(limits)
        self.deadline = deadline
        self._allow_unsandboxed = allow_unsandboxed

    def symbolic(self, gold: str, payload: str, options: MathOptions) -> Verdict:
        return self.client.compare(gold, payload, options)

    def sandbox(self) -> Sandbox:
        return find_sandbox(self._allow_unsandboxed)


class GradingPool:
    """Grades items of any family on `workers` threads; use it as a context manager.

    `deadline` is the wall time in seconds one verdict may take; by default a symbolic comparison has `WALL_SECONDS`
    and a program its own limits (`sandbox.Limits`, or its data's). `cpu_seconds` is the processor time of a symbolic
    comparison, `memory` its address space in bytes. `allow_unsandboxed` runs programs without isolation where
    bubblewrap is missing.
    """

    def __init__(
        self,
        workers: int = 2,
        deadline: float | None = None,
        memory: int = MEMORY,
        cpu_seconds: float = CPU_SECONDS,
        allow_unsandboxed: bool = False,
    ) -> None:
        self.workers = workers
        self.deadline = deadline
        wall = WALL_SECONDS if deadline is None else deadline
        self.limits = SymbolicLimits(min(cpu_seconds, wall), wall, memory)
        self.allow_unsandboxed = allow_unsandboxed
        self.submitted = self.settled = self.errors = self.timeouts = self.cache_hits = 0
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._local = threading.local()
        self._executor: ThreadPoolExecutor | None = None
        self._benches: list[_Bench] = []
        self._cache: dict[bytes, Future[Verdict]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Drop what is still waiting, let what is running reach its deadline, end every child."""
        executor, self._executor = self._executor, None
        if executor is not None and self._process == os.getpid():
            executor.shutdown(wait=True, cancel_futures=True)
            for bench in self._benches:
                bench.client.close()
        self._benches = []

    def submit(self, item: Item) -> Handle:
        """Decide the item now if exact comparison can, else queue it; returns at once."""
        return self.submit_prepared(prepare(item))

    def submit_prepared(self, prepared: Prepared) -> Handle:
        """Queue what `grading.prepare` left undecided."""
        self.submitted += 1
        payload, family = prepared.undecided, prepared.family
        if payload is None:
            return Handle(prepared, None)
        if self._process != os.getpid():
            self._reset()
        marks = family.fingerprint(prepared.data) if family.fingerprint else None
        question = repr((family.name, prepared.gold, payload, marks))
        key = hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            known = self._cache.get(key)
            if known is not None and not _failed(known):
                self.cache_hits += 1
                return Handle(prepared, known)
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.workers, thread_name_prefix="broadreach-verify")
            future = self._executor.submit(self._settle, prepared, payload)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[key] = future
        return Handle(prepared, future)

    def _settle(self, prepared: Prepared, payload: str) -> Verdict:
        try:
            bench = getattr(self._local, "bench", None)
            if bench is None:
                bench = self._local.bench = _Bench(self.limits, self.deadline, self.allow_unsandboxed)
                self._benches.append(bench)
            assert prepared.family.settle is not None
            verdict = prepared.family.settle(bench, payload, prepared.gold, prepared.data)
        except Exception as error:
            verdict = Verdict(False, error=one_line(error))
        with self._lock:
            self.settled += 1
            self.timeouts += verdict.timed_out
            self.errors += verdict.error is not None and not verdict.timed_out
        return verdict

    def results(self, handles: Sequence[Handle]) -> list[Score]:
        """The scores of the handles, in their order; waits for those still running."""
        return [finish(handle.prepared, _verdict(handle)) for handle in handles]

    def grade_many(self, family: str, items: Iterable[Item | tuple[str, str, Mapping[str, Any]]]) -> list[Score]:
        """Scores of many responses of one family, in their order; an item is an Item or (response, gold, data)."""
        handles = [
            self.submit(item if isinstance(item, Item) else Item(family, item[0], item[1], item[2])) for item in items
        ]
        return self.results(handles)


def _failed(future: Future[Verdict]) -> bool:
    """Whether a finished verdict is a failure of the machinery, which must not be remembered."""
    if future.cancelled():
        return True
    return future.done() and future.result().error is not None and not future.result().timed_out


def _verdict(handle: Handle) -> Verdict:
    if handle.future is None:
        return handle.prepared.verdict or Verdict(False, error="not graded")
    try:
        return handle.future.result()
    except CancelledError:
        return Verdict(False, error="the pool was closed before this item")


_shared: GradingPool | None = None


def shared_pool() -> GradingPool:
    """A pool of one worker for single calls of `grade`; it ends with the process."""
    global _shared
    if _shared is None:
        _shared = GradingPool(workers=1)
        atexit.register(_shared.close)
    return _shared
