"""The program inside the sandbox that runs reasoning-gym's scorers; it is handed to a bare interpreter as text.

Several scorers pass model text to `eval`, so each answer is scored in a fork of its own with limits, and whatever the
fork leaves behind is killed. Frames in: 8-byte length, then a pickle from the trainer. Lines out: JSON.
Arguments: 1 when everything of this uid may be killed (a pid namespace of our own), then directories for `sys.path`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from typing import Any, BinaryIO

PR_SET_DUMPABLE = 4


def read_frame(stream: BinaryIO) -> Any:
    """The next request, or None at the end of the stream."""
    header = stream.read(8)
    return pickle.loads(stream.read(struct.unpack("<Q", header)[0])) if len(header) == 8 else None


def limit(name: str, wanted: int) -> None:
    """Lower a limit, never above the present hard one."""
    which = getattr(resource, name)
    hard = resource.getrlimit(which)[1]
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(which, (soft, soft))


def score_in_fork(dataset: Any, job: dict[str, Any], kept: tuple[int, ...], kill_all: bool) -> dict[str, Any]:
    """Score one answer in a fork; a fork that dies, hangs or raises gives an error."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            for descriptor in (*kept, read_end):
                os.close(descriptor)
            for name, wanted in job["limits"].items():
                limit(name, wanted)
            score = float(dataset.score_answer(answer=job["answer"], entry=job["entry"]))
            os.write(write_end, json.dumps({"score": score}).encode())
        except BaseException as error:
            with contextlib.suppress(BaseException):
                os.write(write_end, json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    reply = collect(read_end, job["deadline"])
    for target in (-child, child):
        with contextlib.suppress(OSError):
            os.killpg(-target, signal.SIGKILL) if target < 0 else os.kill(target, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.waitpid(child, 0)
    if kill_all:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
    os.close(read_end)
    return reply


def collect(descriptor: int, deadline: float) -> dict[str, Any]:
    """What the fork wrote before the deadline."""
    end, data = time.monotonic() + deadline, b""
    while (remaining := end - time.monotonic()) > 0 and select.select([descriptor], [], [], remaining)[0]:
        chunk = os.read(descriptor, 4096)
        data += chunk
        if not chunk or len(data) > 4096:
            try:
                reply = json.loads(data)
                return reply if isinstance(reply, dict) else {"error": "the scorer died"}
            except ValueError:
                return {"error": "the scorer died"}
    return {"timeout": True}


def main() -> None:
    """Import reasoning-gym once, then answer frames until the stream ends."""
    kill_all = sys.argv[1] == "1"
    sys.path[:0] = sys.argv[2:]
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    import reasoning_gym

    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    datasets: dict[bytes, Any] = {}
    print(json.dumps({"ready": True}), file=replies, flush=True)
    while (job := read_frame(requests)) is not None:
        key = pickle.dumps((job["name"], job["config"]))
        if key not in datasets:
            datasets[key] = reasoning_gym.create_dataset(job["name"], size=1, seed=0, **job["config"])
        reply = score_in_fork(datasets[key], job, (requests.fileno(), replies.fileno()), kill_all)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
