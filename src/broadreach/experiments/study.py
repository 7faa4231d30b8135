"""A study: one task by several methods and seeds, evaluated alike, for one comparison (method.md, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from broadreach.config import Config
from broadreach.experiments.catalogue import resolve
from broadreach.experiments.cells import Cell, Job
from broadreach.runs.budget import MEANING
from broadreach.tasks.suites import get_suite
from broadreach.training.setup import prepare
from broadreach.training.stages import responses_per_update
from broadreach.types import UserError

METHODS = ("es", "grpo", "es->grpo", "grpo->es")
"""The methods of the paper."""
Match = Literal["updates", "responses"]


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """What to train, and how to evaluate it."""

    settings: tuple[str, ...]
    """Recipes and TOML files."""
    overrides: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    match: Match
    """What all methods get equally much of."""
    suite: str | None
    """Tasks to evaluate on; None: the training task."""
    baselines: bool
    """Also evaluate the base at other temperatures and with weight noise."""
    folder: Path

    def run(self, method: str, seed: int) -> Path:
        """The run folder of one method and seed."""
        return self.folder / f"{cell_name(method)}-seed{seed}"

    def runs(self) -> list[Path]:
        """All run folders, methods first."""
        return [self.run(method, seed) for method in self.methods for seed in self.seeds]


def study_cells(plan: StudyPlan) -> list[Cell]:
    """One cell a run, single methods first: compositions take their first halves over. UserError for bad settings."""
    _check(plan)
    cells = []
    for seed in plan.seeds:
        for method in sorted(plan.methods, key=lambda one: one.count("->")):
            config = resolve(plan.settings, _overrides(plan, method, seed, None))
            updates = _updates(plan, method, config)
            stem = plan.run(method, seed)
            train = [
                "train",
                *plan.settings,
                *_set(_overrides(plan, method, seed, updates)),
                "--run",
                str(stem),
                "--json",
            ]
            jobs = [Job("training", tuple(train)), Job("evaluating", (*_evaluation(plan, stem), "--json"))]
            if plan.baselines and method == plan.methods[0] and seed == plan.seeds[0]:
                jobs.append(Job("baselines", ("eval", str(stem), "--baselines", "--json")))
            halves = tuple(f"{one}-seed{seed}" for one in plan.methods if "->" not in one) if "->" in method else ()
            whole = resolve(plan.settings, _overrides(plan, method, seed, updates))
            cells.append(Cell(stem.name, tuple(jobs), halves, whole))
    return cells


def cell_name(method: str) -> str:
    """`es->grpo` as part of a file name."""
    return method.replace("->", "-")


def sentence(plan: StudyPlan) -> str:
    """What is matched, in words."""
    seeds = ", ".join(map(str, plan.seeds))
    return f"{len(plan.methods)} methods, seeds {seeds}; matched by {plan.match} ({MEANING[plan.match]})"


def _check(plan: StudyPlan) -> None:
    if plan.suite is not None:
        get_suite(plan.suite)
    if plan.match not in get_args(Match):
        raise UserError(
            f"--match {plan.match}: choose updates or responses before training "
            "(the report's table of matched budgets also has tokens and seconds)"
        )
    for method in plan.methods:
        if any(part not in ("es", "grpo") for part in method.split("->")):
            raise UserError(f"unknown method {method}: write es, grpo, or stages such as es->grpo")
    for values, name in ((plan.methods, "method"), (plan.seeds, "seed")):
        if len(set(values)) < len(values):
            raise UserError(f"a {name} is named twice: {', '.join(map(str, values))}")


def _overrides(plan: StudyPlan, method: str, seed: int, updates: int | None) -> list[str]:
    stages = "->" in method
    chosen = [*plan.overrides, f"seed={seed}", f'train.stages="{method}"' if stages else f"train.method={method}"]
    if stages:
        chosen.append(f"train.stage_split={plan.match}")
    return chosen if updates is None else [*chosen, f"train.updates={updates}"]


def _updates(plan: StudyPlan, method: str, config: Config) -> int:
    """The updates that ES makes, or what scores as many responses."""
    updates = config.train.updates or prepare(config).total
    if plan.match == "updates":
        return updates
    first = config.model_copy(
        update={"train": config.train.model_copy(update={"method": method.split("->")[0], "stages": ()})}
    )
    reference = config.model_copy(update={"train": config.train.model_copy(update={"method": "es", "stages": ()})})
    return max(1, round(updates * responses_per_update(reference) / responses_per_update(first)))


def _evaluation(plan: StudyPlan, run: Path) -> list[str]:
    return ["eval", str(run), *(["--suite", plan.suite] if plan.suite else [])]


def _set(overrides: Sequence[str]) -> list[str]:
    return [part for item in overrides for part in ("--set", item)]
