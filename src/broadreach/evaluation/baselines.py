"""What coverage costs without training: the base at other temperatures, and under weight noise of the ES sigma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadreach.evaluation.evaluate import Evaluator
from broadreach.evaluation.summary import FREE_KEYS, Json, compare_stores, write_json
from broadreach.types import UserError

TEMPERATURES = (0.3, 1.0, 1.3)
DIFFERENT = (*FREE_KEYS, "temperature", "noise_sigma")
"""Settings in which a baseline may differ from the base that it is compared with."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """One way to draw from the untrained model."""

    name: str
    """Its folder."""
    temperature: float
    noise_sigma: float = 0.0


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """A baseline and how it differs from the base, problem by problem."""

    name: str
    folder: Path
    metrics: Json
    comparison: Json


def plan_baselines(temperatures: Sequence[float], sigma: float, temperature: float) -> list[Baseline]:
    """The base at each temperature other than its own, and weight noise at its own; UserError for settings of no use.

    Weight noise: response j of every problem comes from member j, base + sigma * direction j.
    """
    if sigma <= 0:
        raise UserError(f"--noise-sigma {sigma}: weight noise needs a sigma above 0")
    if any(value <= 0 for value in temperatures):
        raise UserError("--temperatures: give numbers above 0; greedy responses are a store of their own (--greedy)")
    chosen = [Baseline(f"temperature-{float(value)}", float(value)) for value in temperatures if value != temperature]
    return [*dict.fromkeys(chosen), Baseline(f"weight-noise-{float(sigma)}", temperature, float(sigma))]


def run_baselines(
    evaluator: Evaluator,
    chosen: Sequence[Baseline],
    root: Path,
    base: Path,
    *,
    inside: str = "",
    siblings: Path | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> list[BaselineResult]:
    """Fill root/NAME/[inside/] for every baseline with the evaluator's weights, and compare each with the store `base`.

    Stores are resumable, and equal ones of sibling runs are copied.
    """
    found = []
    for one in chosen:
        folder = root / one.name / inside

        def advance(done: int, total: int, name: str = one.name) -> None:
            if progress is not None:
                progress(name, done, total)

        metrics = evaluator.sample(
            folder,
            temperature=one.temperature,
            noise_sigma=one.noise_sigma,
            siblings=siblings,
            progress=advance,
            note=note,
        )
        comparison = compare_stores(base, folder / "samples.jsonl", free=DIFFERENT)
        write_json(comparison, folder / "comparison.json")
        found.append(BaselineResult(one.name, folder, metrics, comparison))
    return found
