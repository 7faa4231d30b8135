"""The killable child that runs the symbolic judge; started by `symbolic_client`, never imported by the trainer.

Two processes: a keeper that has imported sympy and does nothing dangerous, and a worker forked from it that may hang
or eat memory. The keeper kills the worker at its deadline and forks a new one in milliseconds, instead of paying
for the imports again (verifiers.md, rows 74-80). Both die with the trainer.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
NEARLY_FULL = 0.9
"""Share of its address space above which a worker's "wrong" is not believed."""


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends, and leave if it has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The verdict on one pair, or the exception in one line."""
    from broadreach.verify.math_equal import MathOptions, equivalent
    from broadreach.verify.symbolic import judge

    try:
        options = MathOptions(**request["options"])
        return {"correct": bool(equivalent(request["gold"], request["payload"], options, judge))}
    except MemoryError:
        return {"limit": "memory"}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"[:200].replace("\n", " ")}


def nearly_full(memory: int) -> bool:
    """Whether this process came close to its limit: the libraries it calls swallow `MemoryError` and say "wrong"."""
    with open("/proc/self/status", encoding="ascii") as lines:
        peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmPeak"))
    return peak > NEARLY_FULL * memory


def serve(requests: int, results: int, parent: int, memory: int, cpu_seconds: float) -> None:
    """The worker: answer requests until killed; a profiling timer ends it after `cpu_seconds` on one request."""
    die_with_parent(parent)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (memory if hard == -1 else min(memory, hard),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with os.fdopen(requests, "rb") as stream:
        for line in stream:
            signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            result = answer(json.loads(line))
            signal.setitimer(signal.ITIMER_PROF, 0)
            if result.get("correct") is False and nearly_full(memory):
                result = {"limit": "memory"}
            os.write(results, json.dumps(result).encode() + b"\n")
            if "correct" not in result:
                os._exit(0)
    os._exit(0)


class Keeper:
    """Forks the worker when it is needed and kills it when it overruns."""

    def __init__(self, memory: int, cpu_seconds: float, wall_seconds: float) -> None:
        self.memory, self.cpu_seconds, self.wall_seconds = memory, cpu_seconds, wall_seconds
        self.worker: int | None = None
        self.requests = self.results = -1

    def fork(self) -> None:
        request_read, self.requests = os.pipe()
        self.results, result_write = os.pipe()
        keeper = os.getpid()
        self.worker = os.fork()
        if self.worker == 0:
            os.close(self.requests)
            os.close(self.results)
            os.close(0)
            try:
                serve(request_read, result_write, keeper, self.memory, self.cpu_seconds)
            finally:
                os._exit(1)
        os.close(request_read)
        os.close(result_write)

    def reap(self) -> int:
        """Kill the worker, wait for it, and return the signal that ended it."""
        assert self.worker is not None
        os.kill(self.worker, signal.SIGKILL)
        status = os.waitpid(self.worker, 0)[1]
        os.close(self.requests)
        os.close(self.results)
        self.worker = None
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def ask(self, line: bytes) -> dict[str, Any]:
        if self.worker is None:
            self.fork()
        deadline = time.monotonic() + self.wall_seconds
        received = b""
        try:
            os.write(self.requests, line)
            while not received.endswith(b"\n"):
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not select.select([self.results], [], [], remaining)[0]:
                    self.reap()
                    return {"limit": "time"}
                chunk = os.read(self.results, 65_536)
                if not chunk:
                    raise BrokenPipeError
                received += chunk
        except OSError:
            time.sleep(0.002)
            ended_by = self.reap()
            return {"limit": "time"} if ended_by == signal.SIGPROF else {"error": f"worker ended by signal {ended_by}"}
        result: dict[str, Any] = json.loads(received)
        if "correct" not in result:
            self.reap()
        return result


def main(parent: int, memory: int, cpu_seconds: float, wall_seconds: float) -> None:
    """The keeper: one JSON request a line in, one JSON result a line out, until the input ends."""
    die_with_parent(parent)
    protocol = os.dup(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    from broadreach.verify import symbolic

    symbolic.read("x^{2}+\\frac{1}{2}")
    gc.collect()
    gc.freeze()
    keeper = Keeper(memory, cpu_seconds, wall_seconds)
    os.write(protocol, b"ready\n")
    with os.fdopen(0, "rb", closefd=False) as stream:
        for line in iter(stream.readline, b""):
            os.write(protocol, json.dumps(keeper.ask(line)).encode() + b"\n")
    if keeper.worker is not None:
        keeper.reap()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
