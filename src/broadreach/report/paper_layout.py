"""Which of our panels stands beside which published one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from broadreach.report.paper_item import Entry, Origin


class Panel(Protocol):
    """What two panels are matched by."""

    @property
    def panel(self) -> str:
        """Its name."""

    @property
    def shape(self) -> object:
        """Equal for panels with the same rows and columns."""


P = TypeVar("P", bound=Panel)


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one panel."""

    origin: Origin
    panel: str
    entries: tuple[Entry, ...]


def groups(entries: Sequence[Entry], by_column: bool = False) -> list[Group]:
    """Entries of each (origin, panel), and column if asked, in order of appearance, ours first."""
    found: dict[tuple[Origin, str, str], list[Entry]] = {}
    for entry in entries:
        found.setdefault((entry.origin, entry.panel, entry.column if by_column else ""), []).append(entry)
    made = [Group(origin, panel, tuple(held)) for (origin, panel, _), held in found.items()]
    return sorted(made, key=lambda group: group.origin != "ours")


def partners(ours: Sequence[P], published: Sequence[P]) -> list[tuple[P | None, P | None]]:
    """Each of ours with a published panel of its shape: of the same name, else about the same; then what is left.

    "nano, all tasks" is about all tasks and may stand beside "Qwen2.5-7B, all tasks"; "nano" beside any model.
    """
    free, chosen = list(published), dict[int, P]()
    for name_of in (str, _about):
        for place, own in enumerate(ours):
            alike = (one for one in free if one.shape == own.shape and name_of(one.panel) == name_of(own.panel))
            if place not in chosen and (other := next(alike, None)) is not None:
                chosen[place] = other
                free.remove(other)
    found: list[tuple[P | None, P | None]] = [(own, chosen.get(place)) for place, own in enumerate(ours)]
    return found + [(None, other) for other in free]


def _about(panel: str) -> str:
    """What follows the model's name; empty where the panel is named after a model alone."""
    return panel.partition(", ")[2].lower().replace("-", " ")
