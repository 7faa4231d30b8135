"""What each method spent, side by side: means over its seeds, read from budget.json."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from broadreach.evaluation.summary import Json
from broadreach.report.comparison_data import Comparison
from broadreach.report.words import count, seconds

COUNTS = ("updates", "responses", "tokens", "prompt_tokens", "forward_positions", "backward_positions")


def _amount(key: str) -> Callable[[Json], float]:
    return lambda budget: float(budget.get(key) or 0.0)


QUANTITIES: tuple[tuple[str, Callable[[Json], float], Callable[[float], str]], ...] = (
    ("Updates", _amount("updates"), count),
    ("Responses", _amount("responses"), count),
    ("Generated tokens", _amount("tokens"), count),
    ("Prompt tokens", _amount("prompt_tokens"), count),
    ("Forward positions", _amount("forward_positions"), count),
    ("Backward positions", _amount("backward_positions"), count),
    ("Training time", lambda budget: float(budget.get("seconds", {}).get("total", 0.0)), seconds),
    ("Peak memory, MiB", _amount("peak_memory_mb"), count),
)
"""(label, how to read it, how to word it)."""


def budgets(data: Comparison) -> dict[str, Json]:
    """Method key -> mean budget over its runs (the largest for memory); methods without budget.json are left out."""
    found: dict[str, Json] = {}
    for method in data.methods:
        rows = [run.budget for run in method.runs if run.budget.get("updates")]
        if not rows:
            continue
        spent: Json = {key: float(np.mean([row.get(key, 0) for row in rows])) for key in COUNTS}
        kinds = dict.fromkeys(kind for row in rows for kind in row.get("seconds", {}))
        spent["seconds"] = {
            kind: float(np.mean([row.get("seconds", {}).get(kind, 0.0) for row in rows])) for kind in kinds
        }
        spent["peak_memory_mb"] = max(float(row.get("peak_memory_mb") or 0.0) for row in rows)
        found[method.key] = spent
    return found


def budget_rows(data: Comparison) -> list[tuple[str, list[str]]]:
    """(quantity, one cell a method) for the page; "–" where a method has no budget.json."""
    found = budgets(data)
    if not found:
        return []
    rows = [
        (label, [word(read(found[m.key])) if m.key in found else "–" for m in data.methods])
        for label, read, word in QUANTITIES
    ]
    kinds = dict.fromkeys(kind for budget in found.values() for kind in budget["seconds"] if kind != "total")
    for kind in kinds:
        cells = [seconds(found[m.key]["seconds"].get(kind, 0.0)) if m.key in found else "–" for m in data.methods]
        beside = kind == "evaluation"
        rows.insert(len(rows) - 1, ("Evaluation during training, beside it" if beside else f"of it {kind}", cells))
    return rows
