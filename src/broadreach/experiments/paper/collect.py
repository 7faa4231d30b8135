"""From the files of the parts to the items: `OUT/items/*.csv`, statements, and what they were made with."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from broadreach.experiments.paper.plan import Definition, PaperPlan
from broadreach.report.paper_files import write_about, write_item, write_statements
from broadreach.report.paper_item import PaperItem
from broadreach.training.environment import environment


def collect(definition: Definition, plan: PaperPlan) -> PaperItem:
    """One item, our numbers only; FileNotFoundError where a part that it needs has not run."""
    found = definition.build(plan)
    return replace(definition.blank(), entries=found.entries, statements=found.statements, notes=found.notes)


def collect_into(definitions: Sequence[Definition], plan: PaperPlan, seconds: Mapping[str, float]) -> list[str]:
    """Write the items whose parts have run into plan.folder/items; one line in words about each."""
    folder = plan.folder / "items"
    made: list[PaperItem] = []
    lines = []
    for definition in definitions:
        try:
            item = collect(definition, plan)
        except FileNotFoundError as error:
            lines.append(f"{definition.id}: not measured, {_shown(error, plan.folder)} is missing")
            continue
        made.append(item)
        lines.append(f"{definition.id}: {write_item(item, folder)}")
        lines += [f"  {claim.number} {claim.verdict}: {claim.statement}" for claim in item.statements]
    if made:
        write_statements(made, folder)
        write_about(_about(plan, seconds), folder)
    return lines


def _about(plan: PaperPlan, seconds: Mapping[str, float]) -> dict[str, object]:
    facts = environment("")
    parts: dict[str, float] = defaultdict(float)
    for name, spent in seconds.items():
        parts[name.split(":")[0]] += spent
    hardware = facts["hardware"]
    accelerator = hardware["accelerator"] or "no accelerator"
    return {
        "scale": plan.scale.name,
        "words": plan.scale.words,
        "command": " ".join(["broadreach", *sys.argv[1:]]),
        "commit": facts["commit"],
        "hardware": f"{hardware['processor']}, {hardware['cores']} cores, {accelerator}",
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": {name: round(spent) for name, spent in parts.items()},
    }


def _shown(error: FileNotFoundError, folder: Path) -> str:
    missing = Path(str(error.filename or error))
    return str(missing.relative_to(folder)) if missing.is_relative_to(folder) else str(missing)
