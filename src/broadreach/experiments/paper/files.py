"""Reading what the parts left; a missing file is a FileNotFoundError that names it."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from broadreach.experiments.paper.plan import PaperPlan
from broadreach.experiments.paper.scale import Population, Study
from broadreach.report.claims import Claim

Ends: TypeAlias = tuple[float | None, float | None, float | None]
"""Value, low and high."""
METHODS = {"base": "Base", "grpo": "GRPO", "es": "ES", "es_grpo": "ES→GRPO", "grpo_es": "GRPO→ES"}
"""The names in the published tables, and ours."""


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def json_object(path: Path) -> dict[str, Any]:
    """A JSON object."""
    value = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def number(text: str | None) -> float | None:
    """A cell of a CSV file; None where it is empty."""
    return float(text) if text else None


def ends(row: Mapping[str, str | None], value: str = "value", low: str = "low", high: str = "high") -> Ends:
    """Value, low and high of a CSV row by their columns."""
    return number(row.get(value)), number(row.get(low)), number(row.get(high))


def percent(found: Ends) -> Ends:
    """Shares as percent."""
    value, low, high = (None if end is None else 100 * end for end in found)
    return value, low, high


def base_of(plan: PaperPlan, part: Study | Population) -> str:
    """The base model without its folders."""
    return plan.config(part).model.path.rstrip("/").rsplit("/", 1)[-1]


def model_of(plan: PaperPlan, study: Study) -> str:
    """What a study is called in panels: its base model, and its setting where two studies share the model."""
    name = base_of(plan, study)
    rivals = [other for other in plan.scale.studies if other.recipe == study.recipe and other is not study]
    return f"{name} ({study.setting})" if rivals else name


def claims_of(plan: PaperPlan, studies: tuple[Study, ...], *numbers: str) -> tuple[Claim, ...]:
    """The statements whose numbers begin so ("1" means 1a to 1f), as the comparisons of the studies judged them."""
    found = []
    for study in studies:
        for row in csv_rows(plan.report(study) / "tables" / "claims.csv"):
            if row["claim"].startswith(numbers):
                statement = f"{row['statement']} ({model_of(plan, study)})" if len(studies) > 1 else row["statement"]
                found.append(Claim(row["claim"], statement, row["verdict"], row["evidence"]))
    return tuple(found)
