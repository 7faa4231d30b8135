"""How several runs at once show themselves: a bar each in a terminal, a line for each event that matters elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from broadreach.commands.progress import plain
from broadreach.experiments.cells import Cell, Job


class CellsView:
    """A `Watcher` on the terminal; plain lines where there is none."""

    def __init__(self, console: Console, total: int) -> None:
        self.console = console
        self.total = total
        self.began = time.monotonic()
        self.done = 0
        columns = (TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("{task.fields[facts]}"), console=console)
        self.tasks: dict[str, Any] = {}
        self.phases: dict[str, str] = {}
        self.warned: set[str] = set()

    def __enter__(self) -> CellsView:
        if self.console.is_terminal:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def started(self, cell: Cell, job: Job) -> None:
        """Say what begins."""
        self._phase(cell.name, job.label)

    def event(self, cell: Cell, job: Job, event: Mapping[str, Any]) -> None:
        """Advance the bar of a cell; elsewhere say when a phase begins."""
        kind = event.get("event")
        phase = f"{job.label} {event['store']}" if kind == "problems" else job.label
        self._phase(cell.name, phase)
        task = self.tasks[cell.name]
        if kind == "start":
            self.bar.update(task, completed=event["done"], total=event["total"])
        elif kind == "update":
            facts = f"reward {event['reward_mean']:.3f}  right {event['accuracy']:.0%}  form {event['format_rate']:.0%}"
            self.bar.update(task, completed=event["step"], facts=facts)
            if not self.console.is_terminal and event["step"] % 10 == 0:
                self._say(f"{cell.name}: update {event['step']}  {facts}")
        elif kind == "problems":
            self.bar.update(task, completed=event["done"], total=event["total"], facts="")
        elif kind == "warning" and event["text"] not in self.warned:
            self.warned.add(event["text"])
            self._say(f"[yellow]![/] {cell.name}: {plain(event['text'])}")

    def ended(self, cell: Cell, failure: str | None) -> None:
        """Say how a cell ended."""
        self.done += 1
        if cell.name in self.tasks:
            self.bar.remove_task(self.tasks.pop(cell.name))
        ending = "done" if failure is None else f"[red]{plain(failure)}[/]"
        self._say(f"{cell.name}: {ending}  ({self.done} of {self.total})")

    def _phase(self, name: str, phase: str) -> None:
        if name not in self.tasks:
            self.tasks[name] = self.bar.add_task(name, total=None, facts="")
        if self.phases.get(name) != phase:
            self.phases[name] = phase
            self.bar.update(self.tasks[name], description=f"{name}: {phase}", facts="")
            if not self.console.is_terminal:
                self._say(f"{name}: {phase}")

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.began), 60)
        self.console.print(f"{minutes:3d}:{seconds:02d}  {text}")
