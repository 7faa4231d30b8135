"""What a training run says while it works; the command line shows it as a bar, as lines or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Reporter(Protocol):
    """Listens to one run."""

    def note(self, text: str) -> None:
        """A fact about the run, in one line."""

    def warn(self, text: str) -> None:
        """Something the user should look at, in one line."""

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Updates begin (or go on, after a resume, at `done`)."""

    def responses(self, count: int) -> None:
        """So many more responses were generated in this update."""

    def update(self, metrics: Mapping[str, Any]) -> None:
        """One update ended; `metrics` is its line of metrics.jsonl."""


class Silent:
    """A reporter that says nothing."""

    def note(self, text: str) -> None:
        """Ignore."""

    def warn(self, text: str) -> None:
        """Ignore."""

    def start(self, done: int, total: int, responses_per_update: int) -> None:
        """Ignore."""

    def responses(self, count: int) -> None:
        """Ignore."""

    def update(self, metrics: Mapping[str, Any]) -> None:
        """Ignore."""
