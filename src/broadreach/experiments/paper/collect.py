"""From the files of the parts to the items: `OUT/items/*.csv`, statements, and what they were made with."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from broadreach.evaluation.summary import Json
from broadreach.experiments.paper.plan import Definition, PaperPlan
from broadreach.report.paper_files import read_about, write_about, write_item, write_statements
from broadreach.report.paper_item import PaperItem
from broadreach.training.environment import environment


@dataclass(frozen=True, slots=True)
class Collected:
    """What became of the items."""

    lines: list[str]
    """In words, for the terminal."""
    failures: dict[str, str]
    """Item -> why it could not be made."""


def collect(definition: Definition, plan: PaperPlan) -> PaperItem:
    """One item, our numbers only; FileNotFoundError where a part that it needs has not run."""
    found = definition.build(plan)
    return replace(definition.blank(), entries=found.entries, statements=found.statements, notes=found.notes)


def collect_into(definitions: Sequence[Definition], plan: PaperPlan, seconds: Mapping[str, float]) -> Collected:
    """Write the items whose parts have run into plan.folder/items; one that cannot be made does not stop the others."""
    folder = plan.folder / "items"
    made: list[PaperItem] = []
    lines, failures = [], {}
    for definition in definitions:
        try:
            item = collect(definition, plan)
        except FileNotFoundError as error:
            failures[definition.id] = f"not measured, {_shown(error, plan.folder)} is missing"
            continue
        except (KeyError, ValueError, IndexError) as error:
            failures[definition.id] = f"not made, {type(error).__name__}: {error}"
            continue
        made.append(item)
        lines.append(f"{definition.id}: {write_item(item, folder)}")
        lines += [f"  {claim.number} {claim.verdict}: {claim.statement}" for claim in item.statements]
    if made:
        write_statements(made, folder)
        write_about(_about(plan, seconds, [item.id for item in made], read_about(folder)), folder)
    return Collected(lines, failures)


def _about(plan: PaperPlan, seconds: Mapping[str, float], made: Sequence[str], before: Json) -> Json:
    """Scale, hardware, seconds of every part, and the command and commit that collected each item."""
    facts = environment("")
    parts: dict[str, float] = defaultdict(float)
    for name, spent in seconds.items():
        parts[name.split(":")[0]] += spent
    hardware = facts["hardware"]
    accelerator = hardware["accelerator"] or "no accelerator"
    commands = {**before.get("collected", {})}
    date = datetime.now(UTC).date().isoformat()
    for item in made:
        commands[item] = f"{_command()} (commit {facts['commit']}, {date})"
    return {
        "scale": plan.scale.name,
        "words": plan.scale.words,
        "command": sorted({text.split(" (commit ")[0] for text in commands.values()}),
        "commit": facts["commit"],
        "hardware": f"{hardware['processor']}, {hardware['cores']} cores, {accelerator}",
        "date": date,
        "settings": list(plan.overrides),
        "seconds": {name: round(spent) for name, spent in parts.items()},
        "collected": commands,
    }


def _command() -> str:
    """What was asked, without where it was put."""
    words = sys.argv[1:]
    while "--out" in words:
        place = words.index("--out")
        del words[place : place + 2]
    return " ".join(["broadreach", *words])


def _shown(error: FileNotFoundError, folder: Path) -> str:
    missing = Path(str(error.filename or error))
    return str(missing.relative_to(folder)) if missing.is_relative_to(folder) else str(missing)
