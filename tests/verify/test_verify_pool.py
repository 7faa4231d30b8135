"""The pool: order, cache, deadlines, memory, respawn, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from broadreach.types import UserError
from broadreach.verify import FAMILIES, GradingPool, Item, grade, math_worker, symbolic
from broadreach.verify.math_equal import MathOptions
from broadreach.verify.symbolic_client import SymbolicClient, SymbolicLimits

SLOW = r"\lfloor \sqrt{x} \rfloor^{\lfloor x^{99} \rfloor}"
"""An expression that keeps sympy busy for longer than any limit used here."""
RIGHT = Item("boxed_math", r"\boxed{\sqrt{12}}", r"2\sqrt{3}")
WRONG = Item("boxed_math", r"\boxed{\sqrt{13}}", r"2\sqrt{3}")
HANGS = Item("boxed_math", rf"\boxed{{{SLOW}}}", r"x^{2}")


def children_of(pid: int) -> list[int]:
    """Pids of all descendants, from /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
    found = [pid]
    for candidate in found:
        found += [child for child, parent in parents.items() if parent == candidate]
    return found[1:]


def alive(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.append(pid)
    return found


def test_exact_items_start_nothing() -> None:
    with GradingPool(workers=2) as own:
        before = children_of(os.getpid())
        scores = own.grade_many("boxed_math", [(rf"\boxed{{{n}}}", "3", {}) for n in range(100)])
        assert [score.correct for score in scores] == [n == 3 for n in range(100)]
        assert children_of(os.getpid()) == before
        assert (own.submitted, own.settled) == (100, 0)


def test_results_keep_their_order_and_nobody_borrows_a_verdict(pool: GradingPool) -> None:
    surds = [Item("boxed_math", rf"\boxed{{\sqrt{{{4 * n}}}}}", r"2\sqrt{7}") for n in range(2, 30)]
    mixed = [surds[0], HANGS, *surds[1:], Item("boxed_math", "no box", "1")]
    handles = [pool.submit(item) for item in mixed]
    scores = pool.results(handles)
    assert [score.correct for score in scores] == [False, False, *(n == 7 for n in range(3, 30)), False]
    assert [score.timed_out for score in scores] == [False, True, *([False] * 28)]
    assert [score.extracted for score in scores[2:-1]] == [item.response[7:-1] for item in surds[1:]]


def test_a_hang_is_killed_counted_and_leaves_the_pool_healthy() -> None:
    with GradingPool(workers=1, deadline=4.0, cpu_seconds=0.5) as own:
        assert own.grade_many("boxed_math", [RIGHT])[0].correct
        started = time.monotonic()
        score = own.grade_many("boxed_math", [HANGS])[0]
        assert time.monotonic() - started < 6
        assert (score.reward, score.error, score.timed_out) == (0.1, "timeout", True)
        assert own.grade_many("boxed_math", [WRONG, RIGHT])[0].correct is False
        assert (own.timeouts, own.errors) == (1, 0)
        started = time.monotonic()
        own.grade_many("boxed_math", [HANGS] * 20)
        assert time.monotonic() - started < 0.5
        assert own.cache_hits == 21


def test_the_wall_deadline_holds_where_no_processor_time_is_used() -> None:
    client = SymbolicClient(SymbolicLimits(cpu_seconds=50.0, wall_seconds=0.5))
    assert client.compare("x^2-1", "(x-1)(x+1)", MathOptions()).correct
    started = time.monotonic()
    verdict = client.compare("x^{2}", SLOW, MathOptions())
    assert verdict.timed_out
    assert time.monotonic() - started < 3
    assert client.compare("x^2-1", "(x-1)(x+1)", MathOptions()).correct
    client.close()


def test_too_little_memory_is_an_error_not_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SymbolicClient(SymbolicLimits(memory=32 * 1024**2))
    verdicts = [client.compare("x^{2}", payload, MathOptions()) for payload in ("(x+1)^{99}-(x-1)^{98}", "2x", "x^3")]
    assert all(not verdict.correct and verdict.error for verdict in verdicts)
    client.close()

    def eat(*arguments: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(symbolic, "judge", eat)
    question = {"gold": "x^2", "payload": "2x^2-x^2", "options": {}}
    assert math_worker.answer(question) == {"limit": "memory"}
    monkeypatch.setattr(symbolic, "judge", lambda *arguments: 1 / 0)
    assert math_worker.answer(question) == {"error": "ZeroDivisionError: division by zero"}


def test_a_killed_child_is_replaced() -> None:
    client = SymbolicClient(SymbolicLimits())
    assert client.compare("x^2-1", "(x-1)(x+1)", MathOptions()).correct
    assert client._process is not None
    first = client._process.pid
    for victim in (children_of(first)[0], first):
        os.kill(victim, signal.SIGKILL)
        time.sleep(0.05)
        client.compare("x^2-1", "(x-1)(x+1)", MathOptions())
        assert client.compare("x^2-1", "(x-1)(x+1)", MathOptions()).correct
    client.close()
    assert alive(children_of(first)) == []


def test_it_works_with_torch_and_threads_around(pool: GradingPool) -> None:
    torch = pytest.importorskip("torch")
    torch.ones(64, 64).matmul(torch.ones(64, 64))
    found: list[bool] = []

    def ask(n: int) -> None:
        found.append(
            pool.grade_many("boxed_math", [Item("boxed_math", rf"\boxed{{\sqrt{{{n * n * 3}}}}}", rf"{n}\sqrt{{3}}")])[
                0
            ].correct
        )

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(5, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_closing_ends_every_child() -> None:
    before = set(children_of(os.getpid()))
    with GradingPool(workers=2) as own:
        own.grade_many("boxed_math", [RIGHT, WRONG])
        started = [pid for pid in children_of(os.getpid()) if pid not in before]
        assert started
    deadline = time.monotonic() + 3
    while alive(started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(started) == []


def test_no_child_outlives_a_killed_trainer() -> None:
    program = textwrap.dedent(
        f"""
        import time
        from broadreach.verify import GradingPool, Item
        pool = GradingPool(workers=2, deadline=100.0, cpu_seconds=100.0)
        pool.grade_many("boxed_math", [({RIGHT.response!r}, {RIGHT.gold!r}, {{}})])
        handles = [pool.submit(Item("boxed_math", {HANGS.response!r}, gold)) for gold in ("x", "x^2", "x^3")]
        time.sleep(1)
        print("ready", flush=True)
        pool.results(handles)
        """
    )
    trainer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == b"ready\n"
    family = children_of(trainer.pid)
    assert len(family) >= 2
    trainer.kill()
    trainer.wait()
    deadline = time.monotonic() + 5
    while alive(family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(family) == []


def test_what_waits_when_the_pool_closes_is_an_error_not_a_verdict() -> None:
    own = GradingPool(workers=1, cpu_seconds=0.3)
    handles = [own.submit(Item("boxed_math", rf"\boxed{{{SLOW}}}", rf"x^{{{n}}}")) for n in range(2, 6)]
    own.close()
    scores = own.results(handles)
    assert scores[-1].error == "the pool was closed before this item"
    assert not any(score.correct for score in scores)


def test_broken_data_is_an_error_not_an_exception(pool: GradingPool) -> None:
    score = grade("countdown", "<answer>1 + 2</answer>", "3", {}, pool=pool)
    assert (score.correct, score.reward) == (False, 0.1)
    assert score.error is not None and "nums" in score.error


def test_an_unknown_family_names_those_there_are() -> None:
    with pytest.raises(UserError, match="boxed_math"):
        grade("boxed", "x", "y")
    assert set(FAMILIES) >= {"boxed_math", "choice", "answer_tag", "countdown", "code", "exact"}


def test_strict_and_lenient_are_told_apart(pool: GradingPool) -> None:
    score = grade("boxed_math", "Final Answer: **73**", "73", pool=pool)
    assert (score.reward, score.format_ok, score.lenient_correct, score.answer_key) == (0.0, False, True, None)
    score = grade("boxed_math", r"\boxed{74}", "73", pool=pool)
    assert (score.reward, score.lenient_correct, score.answer_key) == (0.1, False, "74")
    score = grade("boxed_math", "The answer is $\\sqrt{12}$", r"2\sqrt{3}", pool=pool)
    assert (score.reward, score.lenient_correct) == (0.0, True)


def test_one_call_without_a_pool_uses_a_shared_one() -> None:
    assert grade("boxed_math", RIGHT.response, RIGHT.gold).correct
    assert not grade("boxed_math", WRONG.response, WRONG.gold).correct
