"""A killable, sandboxed process that runs reasoning-gym's scorers on model text."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from broadreach.config import VerifySettings
from broadreach.types import UserError
from broadreach.verify.sandbox import Sandbox, find_sandbox

CHILD = Path(__file__).with_name("rgym_child.py")
START_SECONDS = 120.0
GRACE_SECONDS = 5.0
SCORE_SECONDS = 5.0
"""Seconds one score may take where the settings name no deadline."""
TEMPORARY_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class RawScore:
    """What the scorer said about one answer, or why it said nothing."""

    value: float | None
    error: str | None = None
    timed_out: bool = False


class Scorer:
    """`with Scorer(settings) as scorer`: one process, started at the first answer, restarted when it dies."""

    def __init__(self, settings: VerifySettings) -> None:
        self.settings = settings
        self.deadline = SCORE_SECONDS if settings.deadline is None else settings.deadline
        self._process: subprocess.Popen[bytes] | None = None
        self._buffer = b""

    def __enter__(self) -> Scorer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def score(self, name: str, config: Mapping[str, Any], entry: Mapping[str, Any], answer: str) -> RawScore:
        """The scorer's value for one answer; UserError only when the sandbox or the process cannot be started."""
        limits = {
            "RLIMIT_AS": int(self.settings.memory_gb * 1024**3),
            "RLIMIT_CPU": max(1, round(self.deadline)),
            "RLIMIT_FSIZE": 1024**2,
            "RLIMIT_CORE": 0,
        }
        job = {
            "name": name,
            "config": dict(config),
            "entry": dict(entry),
            "answer": answer,
            "deadline": self.deadline,
            "limits": limits,
        }
        if self._process is None:
            self._start()
        reply = self._ask(job)
        if reply is None:
            self._stop()
            return RawScore(None, "the scorer's process died or did not answer", timed_out=True)
        if reply.get("timeout"):
            return RawScore(None, "timeout", timed_out=True)
        value = reply.get("score")
        if not isinstance(value, int | float):
            return RawScore(None, str(reply.get("error", "the scorer gave no number")))
        return RawScore(float(value))

    def _ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        assert self._process is not None and self._process.stdin is not None
        data = pickle.dumps(job)
        try:
            self._process.stdin.write(struct.pack("<Q", len(data)) + data)
            self._process.stdin.flush()
        except OSError:
            return None
        return self._reply(self.deadline + GRACE_SECONDS)

    def _reply(self, seconds: float) -> dict[str, Any] | None:
        assert self._process is not None and self._process.stdout is not None
        descriptor, end = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._buffer:
            remaining = end - time.monotonic()
            if remaining <= 0 or not select.select([descriptor], [], [], remaining)[0]:
                return None
            chunk = os.read(descriptor, 65_536)
            if not chunk or len(self._buffer) > 65_536:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply = json.loads(line)
        except ValueError:
            return None
        return reply if isinstance(reply, dict) else None

    def _start(self) -> None:
        self._buffer = b""
        self._process = subprocess.Popen(
            command(find_sandbox(self.settings.allow_unsandboxed)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"},
        )
        if self._reply(START_SECONDS) != {"ready": True}:
            self._stop()
            raise UserError(
                "the sandboxed reasoning-gym scorer did not start; check `pip install 'broadreach[reasoning-gym]'` "
                "and bubblewrap (`broadreach doctor`)"
            )

    def _stop(self) -> None:
        """End the process and, with it, everything in its pid namespace."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def command(sandbox: Sandbox) -> list[str]:
    """The sandbox's own command line with our child as program and the packages bound read-only at a neutral path."""
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages")) and os.path.isdir(path)]
    *line, _runner = sandbox.command([], TEMPORARY_BYTES)
    source = CHILD.read_text(encoding="utf-8")
    if sandbox.bwrap is None:
        return [*line, source, "0", *packages]
    inside = [f"/packages{number}" for number in range(len(packages))]
    binds = [part for pair in zip(packages, inside, strict=True) for part in ("--ro-bind", *pair)]
    binds += ["--setenv", "OPENBLAS_NUM_THREADS", "1"]
    place = line.index("--proc")
    return [*line[:place], *binds, *line[place:], source, "1", *inside]
