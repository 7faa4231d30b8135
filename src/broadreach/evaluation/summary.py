"""What one store says (metrics.json), and what two stores on the same problems say about each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from broadreach.evaluation.metrics import maj_curve, pass_curve
from broadreach.evaluation.statistics import (
    DRAWS,
    LEVEL,
    Interval,
    bootstrap,
    bootstrap_columns,
    paired_bootstrap,
    paired_bootstrap_columns,
    small_sample_warning,
)
from broadreach.evaluation.store import differing_keys
from broadreach.evaluation.table import SampleTable, load
from broadreach.runs.files import write_atomically
from broadreach.types import UserError

Json: TypeAlias = dict[str, Any]

FREE_KEYS = ("model_digest", "seed")
"""Settings in which two compared stores may differ: the weights, and the sampling noise."""


def summarise(table: SampleTable, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Json:
    """The content of metrics.json: Pass@K and Maj@K for every K, rates and counts, each rate with its interval."""
    options: Json = {"draws": draws, "level": level, "seed": seed}
    return {
        "version": 1,
        "settings": asdict(table.header),
        "problems": len(table.problem_ids),
        "samples": table.header.samples,
        "complete": table.complete,
        "bootstrap": {"method": "percentile, problems resampled", **options},
        "pass_at_1": _mean(table.correct, options),
        "pass_at_k": _by_k(bootstrap_columns(pass_curve(table.correct), **options)),
        "maj_at_k": _by_k(bootstrap_columns(maj_curve(table.keys, table.correct), **options)),
        "format_rate": _mean(table.format_ok, options),
        "lenient_pass_at_1": _mean(table.lenient, options),
        "truncated": _mean(table.truncated, options),
        "mean_tokens": _mean(table.tokens, options),
        "mean_reward": _mean(table.reward, options),
        **({} if table.f1 is None else {"mean_f1": _mean(table.f1, options)}),
        "errors": int(table.error.sum()),
        "timeouts": int(table.timed_out.sum()),
        "generated_tokens": int(table.tokens.sum()),
        "prompt_tokens": int(table.prompt_tokens.sum()) * table.header.samples,
        "warnings": _warnings(table),
    }


def compare(
    a: SampleTable,
    b: SampleTable,
    *,
    free: Sequence[str] = FREE_KEYS,
    draws: int = DRAWS,
    level: float = LEVEL,
    seed: int = 0,
) -> Json:
    """Paired differences b - a over the same problems, every one with its interval.

    `free` names the settings that may differ. UserError when problem sets or other evaluation settings differ (the
    difference is listed), or a store is unfinished.
    """
    refuse_unlike(a, b, free)
    options: Json = {"draws": draws, "level": level, "seed": seed}
    passes = paired_bootstrap_columns(pass_curve(b.correct), pass_curve(a.correct), **options)
    majorities = paired_bootstrap_columns(maj_curve(b.keys, b.correct), maj_curve(a.keys, a.correct), **options)
    ever_a, ever_b = a.correct.any(axis=1), b.correct.any(axis=1)
    return {
        "version": 1,
        "direction": "b - a",
        "a": asdict(a.header),
        "b": asdict(b.header),
        "problems": len(a.problem_ids),
        "samples": a.header.samples,
        "bootstrap": {"method": "percentile, per-problem differences resampled", **options},
        "pass_at_k": _by_k(passes),
        "maj_at_k": _by_k(majorities),
        "format_rate": _paired(a.format_ok, b.format_ok, options),
        "lenient_pass_at_1": _paired(a.lenient, b.lenient, options),
        "mean_tokens": _paired(a.tokens, b.tokens, options),
        "solved": {
            "both": int((ever_a & ever_b).sum()),
            "only_a": int((ever_a & ~ever_b).sum()),
            "only_b": int((ever_b & ~ever_a).sum()),
            "neither": int((~ever_a & ~ever_b).sum()),
        },
        "notes": [
            f"each interval holds by itself at {level:.0%}; "
            f"over the {a.header.samples} values of K they are not simultaneous"
        ],
        "warnings": [text for text in [small_sample_warning(len(a.problem_ids))] if text],
    }


def compare_stores(a: str | Path, b: str | Path, **options: Any) -> Json:
    """`compare` for two stores on disk; UserError names the file that is missing or broken."""
    return compare(load(a), load(b), **options)


def write_json(values: Json, path: str | Path) -> Path:
    """Write indented JSON aside and rename it, so that no half file is ever read; UserError when the disk is full."""
    target = Path(path)
    write_atomically(target, json.dumps(values, indent=2, allow_nan=False) + "\n")
    return target


def at_k(entries: Sequence[Json], k: int) -> Json:
    """The entry of one K in a `pass_at_k` or `maj_at_k` list; UserError when the store has fewer responses."""
    if not 1 <= k <= len(entries):
        raise UserError(f"K = {k}, but the store holds {len(entries)} responses a problem; draw more, or lower K")
    return entries[k - 1]


def refuse_unlike(a: SampleTable, b: SampleTable, free: Sequence[str] = FREE_KEYS) -> None:
    """UserError unless both are finished, hold the same problems, and differ in settings of `free` only."""
    differences = differing_keys(a.header, b.header, allowed=free)
    if differences:
        raise UserError(
            f"these stores cannot be compared, they differ in {'; '.join(differences)}; evaluate both alike"
        )
    for name, table in (("first", a), ("second", b)):
        if not table.complete:
            raise UserError(
                f"the {name} store holds {len(table.problem_ids)} of {table.header.problems} problems; finish its "
                "evaluation before comparing"
            )
    if a.problem_ids != b.problem_ids:
        only = sorted(set(a.problem_ids) ^ set(b.problem_ids))
        raise UserError(f"these stores hold different problems ({', '.join(only[:5])} ...); evaluate both alike")


def _warnings(table: SampleTable) -> list[str]:
    found = [small_sample_warning(len(table.problem_ids))]
    if not table.complete:
        found.append(f"unfinished: {len(table.problem_ids)} of {table.header.problems} problems")
    if table.error.any():
        found.append(f"{int(table.error.sum())} responses could not be judged and count as wrong")
    return [text for text in found if text]


def _by_k(intervals: Sequence[Interval]) -> list[Json]:
    return [{"k": k, **_ends(interval)} for k, interval in enumerate(intervals, start=1)]


def _ends(interval: Interval) -> Json:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _mean(cells: NDArray[Any], options: Json) -> Json:
    return _ends(bootstrap(cells.mean(axis=1, dtype=np.float64), **options))


def _paired(a: NDArray[Any], b: NDArray[Any], options: Json) -> Json:
    first, second = a.mean(axis=1, dtype=np.float64), b.mean(axis=1, dtype=np.float64)
    return _ends(paired_bootstrap(second, first, **options))
