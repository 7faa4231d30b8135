"""Named values with intervals over prompts: what the theory analyses hand to files and tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from broadreach.evaluation.statistics import DRAWS, LEVEL, Interval, bootstrap_columns, intervals, seed_draws

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Value:
    """One measured quantity."""

    name: str
    interval: Interval
    """Over prompts; they weigh equally."""
    equation: str = ""
    """The paper's equation, where it has one."""
    note: str = ""

    def row(self) -> dict[str, Any]:
        """The value as one tidy row."""
        found = self.interval
        return {
            "quantity": self.name,
            "value": found.value,
            "low": found.low,
            "high": found.high,
            "n": found.n,
            "equation": self.equation,
            "note": self.note,
        }


def mean_values(columns: Mapping[str, tuple[Floats, str, str]]) -> list[Value]:
    """Means over prompts, all under the same draws: name -> ([prompts], equation, note)."""
    table = np.stack([values for values, _, _ in columns.values()], axis=1)
    found = bootstrap_columns(table)
    return [
        Value(name, interval, equation, note)
        for (name, (_, equation, note)), interval in zip(columns.items(), found, strict=True)
    ]


def function_interval(
    columns: Sequence[Floats], function: Callable[[Floats], Floats], n: int | None = None
) -> Interval:
    """Interval of a function of column means: [units] columns, `function` maps [draws, columns] to [draws].

    The units are resampled as in `bootstrap_columns`. Draws on which the function is not finite are left out; when
    they are more than one in twenty, or the value itself is not finite, the interval is nan.
    """
    table = np.stack(list(columns), axis=1)
    with np.errstate(all="ignore"):
        centre = function(table.mean(axis=0)[None])
        draws = function(seed_draws(table[None], DRAWS, 0))
    units = len(table)
    finite = draws[np.isfinite(draws)]
    if not np.isfinite(centre[0]) or len(finite) < 0.95 * len(draws):
        value = float(centre[0]) if np.isfinite(centre[0]) else float("nan")
        return Interval(value, float("nan"), float("nan"), LEVEL, units)
    return intervals(centre, finite[:, None], LEVEL, units)[0]
