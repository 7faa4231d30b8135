"""Where model-written Python runs: bubblewrap, an own uid, limits, no network (verifiers.md, section 4).

Started as root, one step keeps the capabilities that `setpriv` needs to change to a uid of its own, because a limit
on processes does not bind uid 0. Started as a normal user, a user namespace is enough.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from broadreach.types import UserError

INSIDE_PREFIX = "/opt/py"
RUNNER = Path(__file__).with_name("sandbox_runner.py")
FLAGS = ("-s", "-P", "-S", "-c")
INSTALL_HINT = "install it (`apt-get install bubblewrap util-linux`), or set allow_unsandboxed = true and say so"
SHARED_MEMORY = 1024**2
"""Bytes of /dev/shm inside; `/` and `/dev`, which are memory too, are read-only."""
UIDS_PER_PROCESS = 64
FIRST_UID = 1_000_000
PROBE_SECONDS = 60.0
_slots: Iterator[int] = itertools.count()
_known_to_start: set[Sandbox] = set()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use; none is ever set above the present hard limit."""

    cpu_seconds: int = 10
    wall_seconds: float = 25.0
    memory: int = 512 * 1024**2
    processes: int = 4
    file_size: int = 1024**2
    open_files: int = 64
    temporary_bytes: int = 16 * 1024**2
    output: int = 1024**2
    """Most bytes the program may report; printed text goes nowhere."""

    def rlimits(self, count_processes: bool) -> dict[str, int]:
        """The limits by the names of the `resource` module."""
        limits = {
            "RLIMIT_AS": self.memory,
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_CORE": 0,
        }
        return limits | ({"RLIMIT_NPROC": self.processes} if count_processes else {})


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How to start an interpreter for model-written code."""

    bwrap: str | None
    """Path of bubblewrap; None: no isolation but limits, only on the user's word."""
    setpriv: str | None
    """Path of setpriv; None where bubblewrap starts as a normal user."""

    @property
    def mode(self) -> str:
        """For the report: `bubblewrap` or `unsandboxed`."""
        return "unsandboxed" if self.bwrap is None else "bubblewrap"

    def command(self, arguments: list[str], temporary_bytes: int) -> list[str]:
        """The command line that runs the runner with `arguments` (file descriptors are inherited)."""
        source = RUNNER.read_text(encoding="utf-8")
        if self.bwrap is None:
            return [os.path.realpath(sys.executable), *FLAGS, source, *arguments]
        line = [
            self.bwrap,
            *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
            *("--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
            *(() if self.setpriv else ("--unshare-user",)),
            *("--ro-bind", "/usr", "/usr"),
            *_merged_links(),
            *_python_binding(),
            *("--setenv", "PYTHONHASHSEED", "0", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8"),
            *("--proc", "/proc", "--dev", "/dev"),
            *("--perms", "1777", "--size", str(temporary_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp"),
            *("--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"),
            *("--remount-ro", "/dev", "--remount-ro", "/"),
        ]
        if self.setpriv:
            uid = str(own_uid())
            line += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP", "--"]
            line += [self.setpriv, "--reuid", uid, "--regid", uid, "--clear-groups", "--no-new-privs"]
            line += ["--inh-caps=-all", "--bounding-set=-all"]
        return [*line, "--", _inside_python(), *FLAGS, source, *arguments]


def _merged_links() -> Iterator[str]:
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _prefix_under_usr() -> bool:
    return Path(sys.base_prefix).resolve().is_relative_to("/usr")


def _python_binding() -> tuple[str, ...]:
    """The interpreter at a neutral path: its prefix may lie under a home that the other uid cannot enter."""
    if _prefix_under_usr():
        return ()
    parent = str(Path(INSIDE_PREFIX).parent)
    return (
        *("--perms", "0755", "--dir", parent, "--ro-bind", os.path.realpath(sys.base_prefix), INSIDE_PREFIX),
        *("--setenv", "LD_LIBRARY_PATH", f"{INSIDE_PREFIX}/lib"),
    )


def _inside_python() -> str:
    executable = Path(os.path.realpath(sys.executable))
    if _prefix_under_usr():
        return str(executable)
    return str(Path(INSIDE_PREFIX) / executable.relative_to(os.path.realpath(sys.base_prefix)))


def own_uid() -> int:
    """A uid no other running program of ours has: the limit on processes counts per uid."""
    offset = os.getpid() * UIDS_PER_PROCESS + next(_slots) % UIDS_PER_PROCESS
    first, size = _mapped_uids()
    return first + offset % size


@lru_cache(maxsize=1)
def _mapped_uids() -> tuple[int, int]:
    """(first, count) of the uids free for use in this user namespace."""
    try:
        rows = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
        last = max(inside + length for inside, _, length in rows)
    except (OSError, ValueError):
        last = 65_534
    first = FIRST_UID if last > 2 * FIRST_UID else 2_000
    return first, min(last, 2**31) - first - 2


def start_failure(sandbox: Sandbox) -> str | None:
    """Why this sandbox does not start on this machine, in one line; None where it does (asked once)."""
    if sandbox in _known_to_start:
        return None
    try:
        probe = subprocess.run(
            sandbox.command([], Limits().temporary_bytes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:200]
    if probe.returncode == 0:
        _known_to_start.add(sandbox)
        return None
    lines = probe.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else f"exit code {probe.returncode}"


def find_sandbox(allow_unsandboxed: bool = False) -> Sandbox:
    """The sandbox of this machine; raises UserError where none starts and running without one is not allowed."""
    bwrap, setpriv = shutil.which("bwrap"), shutil.which("setpriv")
    root = os.geteuid() == 0
    if bwrap is None:
        failure = "bubblewrap is missing"
    elif root and setpriv is None:
        failure = "setpriv is missing"
    else:
        sandbox = Sandbox(bwrap, setpriv if root else None)
        reason = start_failure(sandbox)
        if reason is None:
            return sandbox
        failure = f"bubblewrap does not start here ({reason})"
    if allow_unsandboxed:
        return Sandbox(None, None)
    raise UserError(f"model-written code needs a sandbox and {failure}: {INSTALL_HINT}")
