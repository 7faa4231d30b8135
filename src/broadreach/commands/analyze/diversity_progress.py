"""A bar that counts responses as they finish; where there is no terminal, a line every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LINE_SECONDS = 30.0


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Call it with the number of units just done."""
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
