"""Progress bars that show themselves only on a terminal, and only when the work takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds without a bar."""


@contextmanager
def watch(label: str) -> Iterator[Callable[[int, int], None]]:
    """Call what it gives with (parts done, parts in all)."""
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
