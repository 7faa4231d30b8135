"""Where the parts of one paper run lie, and the definition of an item."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broadreach.config import Config
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.paper.scale import Population, Scale, Study
from broadreach.experiments.study import METHODS, StudyPlan
from broadreach.experiments.sweep import SweepPlan
from broadreach.report.claims import Claim
from broadreach.report.paper_item import Entry, Kind, PaperItem
from broadreach.runs.files import explained_disk_errors, lock_or_refuse, sync
from broadreach.types import UserError


@dataclass(frozen=True, slots=True)
class PaperPlan:
    """One scale in one folder."""

    scale: Scale
    folder: Path
    overrides: tuple[str, ...] = ()
    """Settings of every training run, over those of the scale."""

    def study(self, study: Study) -> StudyPlan:
        """What `broadreach study` would be asked."""
        chosen = (*study.overrides, *self.overrides)
        seeds, folder = study.seeds, self.folder / study.name
        return StudyPlan((study.recipe,), chosen, METHODS, seeds, "updates", study.suite, study.baselines, folder)

    def config(self, part: Study | Population, *overrides: str) -> Config:
        """The settings of a study or of the runs at several populations, and of one of its runs by `overrides`."""
        return resolve((part.recipe,), (*part.overrides, *self.overrides, *overrides))

    def plain(self, study: Study) -> tuple[str, ...]:
        """The settings of a study without evaluations during training, for runs beside it."""
        return tuple(item for item in (*study.overrides, *self.overrides) if not item.startswith("eval.curve_"))

    def runs(self, study: Study, method: str) -> list[Path]:
        """The run folders of one method, a seed each."""
        return [self.study(study).run(method, seed) for seed in study.seeds]

    def report(self, study: Study) -> Path:
        """Where `broadreach compare` writes."""
        return self.folder / study.name / "report"

    def sweep(self, population: Population) -> SweepPlan:
        """What `broadreach sweep` would be asked."""
        grid = (("es.population", tuple(map(str, population.sizes))),)
        chosen = (*population.overrides, *self.overrides)
        return SweepPlan((population.recipe,), chosen, grid, population.seeds, self.folder / population.name)


@contextmanager
def held(plan: PaperPlan) -> Iterator[None]:
    """Hold the folder; UserError when another process does, or when it was begun with another scale or other settings.

    Runs cannot be trained again with other settings in their folders, and old runs must not be told for new ones.
    """
    asked = json.dumps({"scale": plan.scale.name, "settings": list(plan.overrides)})
    with explained_disk_errors(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
    with open(plan.folder / "plan.json", "a+", encoding="utf-8") as file:
        lock_or_refuse(file, plan.folder)
        file.seek(0)
        begun = file.read().strip()
        if not begun:
            file.write(asked + "\n")
            sync(file)
        elif begun != asked:
            raise UserError(f"{plan.folder} was begun with {begun}: give the same --scale and --set, or another --out")
        yield


@dataclass(frozen=True, slots=True)
class Found:
    """What an item's files came to."""

    entries: tuple[Entry, ...]
    statements: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """One table or figure: what it needs, and how its numbers are read from the files of those parts."""

    id: str
    title: str
    shows: str
    """What the paper shows there."""
    kind: Kind
    needs: tuple[str, ...]
    """Names in `parts.PARTS`."""
    build: Callable[[PaperPlan], Found]
    """Our numbers; FileNotFoundError where a part has not run."""
    published: Callable[[], tuple[Entry, ...]] = tuple
    """The paper's numbers, where it prints them."""
    x_label: str = ""

    def blank(self) -> PaperItem:
        """The item before anything was measured."""
        return PaperItem(self.id, self.title, self.shows, self.kind, self.published(), x_label=self.x_label)
