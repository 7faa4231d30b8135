"""The sandbox: what a program may do, what is shipped out, and that the machine is as before."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter, OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import pytest

from broadreach.types import UserError
from broadreach.verify import GradingPool, Item
from broadreach.verify import sandbox as sandbox_module
from broadreach.verify.code_steps import steps_of, values_equal
from broadreach.verify.code_tests import code_key, decode, run_tests
from broadreach.verify.sandbox import Limits, Sandbox, find_sandbox
from broadreach.verify.sandbox_run import Program, run_program
from broadreach.verify.sandbox_runner import NotPlainError, encode

QUICK = {"cpu_seconds": 1, "wall_seconds": 3.0}
NEEDS = pytest.mark.needs_bubblewrap


def passes(code: str, *tests: str, **data: Any) -> bool:
    return run_tests(find_sandbox(), textwrap.dedent(code), {"tests": tests, **QUICK, **data}).correct


def processes() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


HOSTILE = {
    "endless loop": "while True: pass",
    "swallowed exceptions": "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
    "memory": "bytearray(10**11)",
    "growing memory": "xs = [0]\nwhile True: xs += xs",
    "output flood": "while True: print('x' * 10**6)",
    "error flood": "import sys\nwhile True: sys.stderr.write('x' * 10**6)",
    "big file": "with open('/tmp/big', 'wb') as f:\n  for _ in range(1000): f.write(bytes(10**6))",
    "many files": "for n in range(10**6): open(f'/tmp/{n}', 'w').write('x' * 10**5)",
    "child in its own session": "import subprocess\nsubprocess.Popen(['sleep', '77'], start_new_session=True)\n1 / 0",
    "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "network": "import socket\nsocket.create_connection(('127.0.0.1', 22), 1)",
    "reading home": "import os\nos.listdir('/root')",
    "reading etc": "open('/etc/passwd').read()",
    "exit": "import sys\nsys.exit(0)",
    "hard exit": "import os\nos._exit(0)",
    "printed words": "print('ALL PASSED')\ndef f(): return 2",
    "always equal": "class E:\n  def __eq__(s, o): return True\ndef f(): return E()",
    "patched builtins": "import builtins\nbuiltins.repr = lambda v: '1'\nbuiltins.print = None\ndef f(): return 2",
    "huge integer": "def f(): return 10**10**9",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "killing the parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\ndef f(): return 2",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()",
    "writing the system": "open('/usr/planted', 'w')",
    "tracing": "import sys\nsys.settrace(lambda *a: None)\nraise SystemExit",
}


@NEEDS
@pytest.mark.parametrize("code", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_program_scores_zero_in_time(code: str) -> None:
    started = time.monotonic()
    assert not passes(code, "assert f() == 1")
    assert time.monotonic() - started < 12


@NEEDS
def test_hostile_programs_leave_no_process_and_no_file() -> None:
    before, listing = processes(), sorted(os.listdir("/tmp"))
    outside = [Path("/tmp/big"), Path("/usr/planted")]
    code = "import os, subprocess\nopen('/tmp/big', 'w').write('x')\n"
    code += "for _ in range(3): subprocess.Popen(['sleep', '76'], start_new_session=True)\ndef f(): return 1"
    assert passes(code, "assert f() == 1")
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        names = [Path(f"/proc/{pid}/cmdline") for pid in processes() - before]
        left = [name for name in names if name.exists() and b"\x0076\x00" in name.read_bytes()]
        if not left:
            break
        time.sleep(0.05)
    assert left == []
    assert not any(path.exists() for path in outside)
    assert [name for name in listing if not Path("/tmp", name).exists()] == []


@NEEDS
def test_what_a_program_sees() -> None:
    assert passes("import os\ndef f(): return [os.getuid() > 0, os.getcwd()]", "assert f() == [True, '/tmp']")
    assert passes("import os\ndef f(): return os.path.exists('/home/..')", "assert f() == False")
    assert passes("import os\ndef f(): return 'SECRET' in os.environ", "assert f() == False")
    assert passes("import sys\ndef f(): return sys.stdin.read()", "assert f() == ''")
    assert passes("def f(): return len(open('/proc/net/dev').readlines())", "assert f() <= 3")
    assert passes(
        "import os\nopen('/tmp/x', 'w').write('ok')\ndef f(): return open('/tmp/x').read()", "assert f() == 'ok'"
    )


@NEEDS
def test_setup_imports_and_statements_of_a_test_run() -> None:
    assert passes("class Node: pass\ndef f(n): return n.x", "n = Node(); n.x = 3", "assert f(n) == 3")
    assert passes("def f(): return root.x\nclass Node: x = 4", "assert f() == 4", setup="root = Node()")
    assert passes("def f(): return 9.0", "assert f() == math.sqrt(81)", imports=["import math"])


@NEEDS
def test_right_but_slow_is_right_and_limits_are_reported() -> None:
    assert passes("import time\ndef f():\n  time.sleep(1)\n  return 1", "assert f() == 1")
    outcome = run_program(find_sandbox(), Program("while True: pass", [("value", "1")]), Limits(1, 5.0))
    assert (outcome.started, outcome.loaded, outcome.timed_out) == (True, False, True)
    outcome = run_program(find_sandbox(), Program("import time\ntime.sleep(60)", []), Limits(1, 1.0))
    assert outcome.timed_out
    outcome = run_program(find_sandbox(), Program("1 / 0", []), Limits(1, 5.0))
    assert (outcome.started, outcome.timed_out) == (True, False)


@NEEDS
def test_a_forged_report_is_worth_nothing() -> None:
    forge = """
        import os
        for fd in range(3, 30):
            try:
                os.write(fd, b"loaded\\n" + b"0" * 32 + b'["i", "1"]\\n' + b"0" * 32 + b"done\\n")
            except OSError:
                pass
        def f():
            return 2
    """
    assert not passes(forge, "assert f() == 1")


@NEEDS
def test_programs_grade_in_parallel_with_their_own_uids() -> None:
    code = "import os\ndef f():\n  pid = os.fork()\n  if not pid: os._exit(0)\n  return 1 if pid else 0"
    items = [Item("code", f"```python\n{code}\n# {n}\n```", "", {"tests": ["assert f() == 1"]}) for n in range(6)]
    with GradingPool(workers=3) as own:
        assert [score.correct for score in own.grade_many("code", items)] == [True] * 6


@NEEDS
def test_no_program_outlives_a_killed_trainer() -> None:
    program = textwrap.dedent(
        """
        from broadreach.verify import GradingPool, Item
        pool, tests = GradingPool(workers=1), {"tests": ["assert 1"]}
        handle = pool.submit(Item("code", "```python\\nimport os\\nos.system('sleep 75')\\n```", "", tests))
        print("ready", flush=True)
        pool.results([handle])
        """
    )
    trainer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == b"ready\n"

    def sleepers() -> list[int]:
        found = []
        for pid in processes():
            try:
                if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x0075\x00":
                    found.append(pid)
            except OSError:
                continue
        return found

    deadline = time.monotonic() + 20
    while not sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers()
    os.kill(trainer.pid, signal.SIGKILL)
    trainer.wait()
    deadline = time.monotonic() + 5
    while sleepers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers() == []


def test_a_missing_sandbox_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match=r"bubblewrap is missing.*apt-get install.*allow_unsandboxed"):
        find_sandbox()
    assert find_sandbox(allow_unsandboxed=True).mode == "unsandboxed"


def test_a_sandbox_that_is_refused_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: str(refusing))
    with pytest.raises(UserError, match=r"does not start here \(bwrap: No permissions.*allow_unsandboxed"):
        find_sandbox()
    assert find_sandbox(allow_unsandboxed=True).mode == "unsandboxed"


def test_without_a_sandbox_grading_reports_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: None)
    with GradingPool(workers=1) as own:
        score = own.grade_many("code", [("```python\nx = 1\n```", "", {"tests": ["assert x == 1"]})])[0]
    assert (score.correct, score.reward) == (False, 0.1)
    assert score.error is not None and "bubblewrap" in score.error


def test_limits_alone_still_judge_and_stop() -> None:
    bare = Sandbox(None, None)
    data = {"tests": ["assert f(2) == 4"], **QUICK}
    assert run_tests(bare, "def f(x): return x * x", data).correct
    assert not run_tests(bare, "def f(x): return x + 3", data).correct
    assert run_tests(bare, "while True: pass", data).timed_out


def test_a_sandbox_that_does_not_start_is_an_error_of_the_machine() -> None:
    verdict = run_tests(Sandbox("/bin/false", None), "x = 1", {"tests": ["assert x == 1"]})
    assert verdict.error is not None and "did not start" in verdict.error


def test_bad_tests_are_errors() -> None:
    assert run_tests(Sandbox(None, None), "x = 1", {"tests": ["assert ("]}).error is not None
    assert run_tests(Sandbox(None, None), "x = 1", {}).error == "no tests"


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -(10**5000), 0.1, float("inf"), 1j, "é\ud800", b"\x00", [1, [2]], (1,), {1, 2}, {"a": (1, [2.5])}],
    ids=lambda value: type(value).__name__,
)
def test_plain_values_survive_the_way_out(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


def test_standard_containers_go_by_their_contents_and_others_do_not() -> None:
    assert decode(encode(Counter("aab"))) == {"a": 2, "b": 1}
    assert decode(encode(OrderedDict(a=1))) == {"a": 1}
    assert decode(encode(Point(1, 2))) == (1, 2)

    class Same(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    for value in (Same(), object(), range(3), [Same()], iter([1])):
        with pytest.raises(NotPlainError):
            encode(value)


@pytest.mark.parametrize(
    ("actual", "expected", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (0.31, 0.3, False),
        (1, True, True),
        (6.0, 6, True),
        ("6", 6, False),
        ([1], (1,), False),
        ({"a": [0.30000000000000004]}, {"a": [0.3]}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        (2**60 + 1, 2**60, False),
    ],
)
def test_values_are_compared_as_python_does_with_a_float_tolerance(actual: Any, expected: Any, same: bool) -> None:
    assert values_equal(actual, expected) is same


@pytest.mark.parametrize(
    ("test", "mode", "source"),
    [
        ("assert f(1) == 2, 'message'", "value", "f(1)"),
        ("assert 2 == f(1)", "value", "f(1)"),
        ("assert set(f(1)) == set([1, 2])", "value", "set(f(1))"),
        ("assert math.isclose(f(1), 2.0, rel_tol=0.1)", "value", "f(1)"),
        ("assert not f(1)", "truth", "f(1)"),
        ("assert f(1) and g(2)", "truth", "f(1)"),
        ("assert f(1) or g(2)", "truth", "f(1) or g(2)"),
        ("assert f(1) == g(2)", "value", "(f(1), g(2))"),
        ("x = f(1)", "run", "x = f(1)"),
    ],
)
def test_expected_values_stay_outside(test: str, mode: str, source: str) -> None:
    step = steps_of(test)[0]
    assert (step.mode, step.source) == (mode, source)


def test_votes_ignore_comments_docstrings_and_annotations() -> None:
    plain = code_key("def f(x):\n    return x\n")
    assert code_key('def f(x: int) -> int:  # same\n    "doc"\n    return x\n') == plain
    assert code_key("def f(x):\n    return x + 1\n") != plain
    assert code_key("def f(") is None
