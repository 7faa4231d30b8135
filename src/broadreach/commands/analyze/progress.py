"""Progress of analyses: bars on a terminal, and for long counts a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds without a bar."""
LINE_SECONDS = 30.0
"""Between two lines where there is no terminal."""


@contextmanager
def watch(label: str) -> Iterator[Callable[[int, int], None]]:
    """Call what it gives with (parts done, parts in all); a bar only on a terminal, when the work takes a while."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(30), TaskProgressColumn(), TimeRemainingColumn())
    shown = Progress(*columns, console=console, transient=True)
    task = shown.add_task(label, total=None)
    start, started = time.monotonic(), False

    def tell(done: int, total: int) -> None:
        nonlocal started
        if not started and console.is_terminal and time.monotonic() - start > PATIENCE:
            shown.start()
            started = True
        shown.update(task, completed=done, total=total)

    try:
        yield tell
    finally:
        if started:
            shown.stop()


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Call what it gives with the number of units just done; without a terminal a line every half minute."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(title, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.advance(task, count)


def _lines(title: str, total: int) -> Callable[[int], None]:
    done, said = 0, time.perf_counter()

    def advance(count: int) -> None:
        nonlocal done, said
        done += count
        if time.perf_counter() - said > LINE_SECONDS:
            said = time.perf_counter()
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    return advance
