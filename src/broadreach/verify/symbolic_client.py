"""The trainer's end of the symbolic child: start it in a fresh interpreter, ask, and replace it when it fails."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from broadreach.verify.math_equal import MathOptions
from broadreach.verify.verdict import Verdict

CPU_SECONDS, WALL_SECONDS, MEMORY = 1.0, 5.0, 2 * 1024**3
START_SECONDS = 120.0
MARGIN_SECONDS = 5.0
"""How much longer than its own deadline the child may take before it is replaced as a whole."""
BOOT = """
import sys, types
for name, path in (("broadreach", sys.argv[1]), ("broadreach.verify", sys.argv[2])):
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
from broadreach.verify.math_worker import main
main(int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), float(sys.argv[6]))
"""
"""Gives the child our package without running its `__init__`: it imports what it needs and no more."""


@dataclasses.dataclass(frozen=True, slots=True)
class SymbolicLimits:
    """What one comparison may use."""

    cpu_seconds: float = CPU_SECONDS
    wall_seconds: float = WALL_SECONDS
    """The deadline: generous, because a loaded machine must not turn right answers into wrong ones."""
    memory: int = MEMORY


class SymbolicClient:
    """One symbolic child, used by one thread; it starts at the first question and dies with that thread."""

    def __init__(self, limits: SymbolicLimits) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def compare(self, gold: str, payload: str, options: MathOptions) -> Verdict:
        """The child's verdict; a limit or a crash is a verdict too, and the next question gets a new child."""
        request = {"gold": gold, "payload": payload, "options": dataclasses.asdict(options)}
        try:
            process = self._process or self._start()
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            result = json.loads(self._read_line(process, self.limits.wall_seconds + MARGIN_SECONDS))
        except TimeoutError:
            self.close()
            return Verdict(False, error="timeout", timed_out=True)
        except (OSError, ValueError) as error:
            self.close()
            return Verdict(False, error=f"symbolic child failed: {error}")
        if "limit" in result:
            return Verdict(False, error="timeout" if result["limit"] == "time" else "out of memory", timed_out=True)
        return Verdict(bool(result.get("correct")), error=result.get("error"))

    def _start(self) -> subprocess.Popen[bytes]:
        package = Path(__file__).parent
        limits = self.limits
        numbers = (os.getpid(), limits.memory, limits.cpu_seconds, limits.wall_seconds)
        self._process = subprocess.Popen(
            [sys.executable, "-c", BOOT, str(package.parent), str(package), *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        if self._read_line(self._process, START_SECONDS) != b"ready\n":
            raise OSError("the symbolic child did not start; is math-verify[antlr4_13_2]==0.9.0 installed?")
        return self._process

    @staticmethod
    def _read_line(process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        deadline = time.monotonic() + seconds
        received = b""
        while not received.endswith(b"\n"):
            remaining = deadline - time.monotonic()
            if remaining <= 0 or not select.select([process.stdout], [], [], remaining)[0]:
                raise TimeoutError
            chunk = os.read(process.stdout.fileno(), 65_536)
            if not chunk:
                raise OSError("it ended")
            received += chunk
        return received

    def close(self) -> None:
        """End the child, and with it the worker it keeps."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.wait()
