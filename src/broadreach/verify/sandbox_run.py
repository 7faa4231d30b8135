"""Run one program in the sandbox and collect what its tests gave, within a wall-clock limit."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

from broadreach.verify.sandbox import Limits, Sandbox

STOPPED_BY_LIMIT = frozenset({128 + signal.SIGXCPU, 128 + signal.SIGKILL, -signal.SIGXCPU, -signal.SIGKILL})
GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Program:
    """A candidate and the tests to run on it; expected values stay outside."""

    code: str
    steps: list[tuple[str, str]]
    """(mode, source): `value` ships the value, `truth` its truth, `run` only has to end."""
    imports: str = ""
    setup: str = ""


@dataclass(slots=True)
class Outcome:
    """What came back."""

    started: bool = False
    """False: the sandbox itself failed; nothing is known about the program."""
    loaded: bool = False
    finished: bool = False
    """Whether the end mark came, under the nonce."""
    timed_out: bool = False
    records: list[Any] = field(default_factory=list)
    """One entry a step, in order; tagged JSON."""


def run_program(sandbox: Sandbox, program: Program, limits: Limits) -> Outcome:
    """Start a fresh interpreter, feed it, and kill everything it left behind; never raises on what the program does."""
    request = {
        "code": program.code,
        "steps": program.steps,
        "imports": program.imports,
        "setup": program.setup,
        "limits": limits.rlimits(count_processes=sandbox.bwrap is not None),
    }
    request_fd = os.memfd_create("broadreach-request", 0)
    nonce_read, nonce_write = os.pipe()
    result_read, result_write = os.pipe()
    inherited = (request_fd, nonce_read, result_write)
    try:
        with open(request_fd, "wb", closefd=False) as stream:
            stream.write(json.dumps(request).encode("ascii"))
        os.lseek(request_fd, 0, os.SEEK_SET)
        process = subprocess.Popen(
            sandbox.command([str(fd) for fd in inherited], limits.temporary_bytes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=inherited,
            start_new_session=True,
            env={"PYTHONHASHSEED": "0", "PATH": "/usr/bin:/bin"},
        )
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    try:
        return _collect(process, nonce_write, result_read, limits)
    finally:
        _stop(process, result_read)
        os.close(nonce_write)
        os.close(result_read)


def _collect(process: subprocess.Popen[bytes], nonce_fd: int, result_fd: int, limits: Limits) -> Outcome:
    outcome = Outcome()
    deadline = time.monotonic() + limits.wall_seconds
    nonce = secrets.token_hex(16)
    pending, total = b"", 0
    while not outcome.finished:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not select.select([result_fd], [], [], remaining)[0]:
            outcome.timed_out = True
            break
        chunk = os.read(result_fd, 65_536)
        total += len(chunk)
        if not chunk or total > limits.output:
            if not chunk:
                outcome.timed_out = _ended_by_limit(process)
            break
        *lines, pending = (pending + chunk).split(b"\n")
        if not all(_accept(line, outcome, nonce, nonce_fd) for line in lines):
            break
    return outcome


def _accept(line: bytes, outcome: Outcome, nonce: str, nonce_fd: int) -> bool:
    """Take one line of the report; False for a line that nothing honest sends."""
    if not outcome.started:
        outcome.started = line == b"ready"
        return outcome.started
    if not outcome.loaded:
        outcome.loaded = line == b"loaded"
        if outcome.loaded:
            with contextlib.suppress(OSError):
                os.write(nonce_fd, nonce.encode("ascii"))
        return outcome.loaded
    if not line.startswith(nonce.encode("ascii")) or outcome.finished:
        return False
    body = line[len(nonce) :]
    if body == b"done":
        outcome.finished = True
        return True
    try:
        outcome.records.append(json.loads(body))
    except (ValueError, RecursionError):
        return False
    return True


def _ended_by_limit(process: subprocess.Popen[bytes]) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(GRACE_SECONDS) in STOPPED_BY_LIMIT
    return False


def _stop(process: subprocess.Popen[bytes], result_fd: int) -> None:
    """Kill the process group; with bubblewrap the pid namespace dies with it, whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + GRACE_SECONDS
    while (remaining := deadline - time.monotonic()) > 0 and select.select([result_fd], [], [], remaining)[0]:
        if not os.read(result_fd, 65_536):
            break
