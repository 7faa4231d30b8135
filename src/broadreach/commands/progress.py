"""How a run shows itself: a live bar, plain lines where there is no terminal, JSON for logs, or nearly nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from broadreach.training.reporter import Reporter


@contextmanager
def make_reporter(quiet: bool = False, as_json: bool = False) -> Iterator[Reporter]:
    """The reporter for these flags, closed at the end."""
    if as_json:
        yield JsonReporter()
        return
    console = Console(highlight=False, soft_wrap=True)
    if quiet:
        yield QuietReporter(console)
    elif console.is_terminal:
        with BarReporter(console) as reporter:
            yield reporter
    else:
        yield LineReporter(console)


@contextmanager
def problem_bar(console: Console, as_json: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A bar per sample store, or JSON lines: call it with (store name, problems stored, problems in all)."""
    if as_json:
        yield lambda name, done, total: say_json({"event": "problems", "store": name, "done": done, "total": total})
        return
    columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def advance(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(f"sampling {name}", total=total)
            bar.update(tasks[name], completed=done)

        yield advance


def summary(metrics: Mapping[str, Any]) -> str:
    """Reward, spread, accuracy, form and speed of one update in one line."""
    speed = metrics["tokens"] / max(metrics["seconds"]["total"], 1e-9)
    moved = "" if metrics["updated"] else "  (equal rewards: no update)"
    return (
        f"reward {metrics['reward_mean']:.3f} ±{metrics['reward_std']:.3f}  right {metrics['accuracy']:.1%}  "
        f"form {metrics['format_rate']:.0%}  {speed:,.0f} tok/s{moved}"
    )


class QuietReporter:
    """Warnings only."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def note(self, text: str) -> None:
        """Ignore."""

    def warn(self, text: str) -> None:
        """Print it."""
        self.console.print(f"[yellow]![/] {plain(text)}")

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Ignore."""

    def responses(self, count: int) -> None:
        """Ignore."""

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Ignore."""


class LineReporter(QuietReporter):
    """One line an update, for files and pipes."""

    def note(self, text: str) -> None:
        """Print it."""
        self.console.print(plain(text))

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Remember the total for the line's heading and the time left."""
        self.done, self.total, self.began = done, total, time.monotonic()

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Print the update with the time left."""
        step = metrics["step"]
        left = (time.monotonic() - self.began) / (step - self.done) * (self.total - step)
        self.console.print(f"update {step}/{self.total}  {summary(metrics)}  {_clock(left)} left")


class BarReporter(LineReporter):
    """Two bars: updates of the run, and responses of the present update."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        columns = (TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeRemainingColumn(), TextColumn("{task.fields[facts]}"), console=console)

    def __enter__(self) -> BarReporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Show the bars."""
        self.bar.start()
        self.updates = self.bar.add_task("updates", total=total, completed=done, facts="")
        self.batch = self.bar.add_task("responses", total=responses_per_update, facts="")

    def responses(self, count: int) -> None:
        """Advance the inner bar."""
        self.bar.advance(self.batch, count)

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Advance the outer bar and show the facts of the update."""
        self.bar.update(self.updates, completed=metrics["step"], facts=summary(metrics))
        self.bar.reset(self.batch)


class JsonReporter:
    """One JSON object a line on standard output."""

    def note(self, text: str) -> None:
        """A note."""
        say_json({"event": "note", "text": text})

    def warn(self, text: str) -> None:
        """A warning."""
        say_json({"event": "warning", "text": text})

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Updates begin."""
        say_json({"event": "start", "done": done, "total": total, "responses_per_update": responses_per_update})

    def responses(self, count: int) -> None:
        """Ignore: logs want updates."""

    def update(self, metrics: Mapping[str, Any]) -> None:
        """An update."""
        say_json({"event": "update", **metrics})


def say_json(event: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def plain(text: str) -> str:
    """Text in which the terminal's markup means nothing."""
    return text.replace("[", "\\[")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
