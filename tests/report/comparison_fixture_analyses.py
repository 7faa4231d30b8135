"""What the analyses leave in a made-up run folder, written by the commands' own writers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from comparison_fixture_runs import TASKS, made_problems, write_store

from broadreach.analysis.drift import drift
from broadreach.analysis.null import simulate
from broadreach.analysis.null_summary import summarise
from broadreach.analysis.null_walk import plain_run
from broadreach.analysis.threshold import Removed
from broadreach.commands.analyze.ask import Answer
from broadreach.commands.analyze.drift import _rows as drift_rows
from broadreach.commands.analyze.drift import _values as drift_values
from broadreach.commands.analyze.null_view import null_rows
from broadreach.commands.analyze.output import write_analysis
from broadreach.commands.analyze.threshold import _rows as threshold_rows
from broadreach.evaluation.summary import summarise as summarise_store
from broadreach.evaluation.table import load

TAUS = (2.5e-4, 5e-4)
SHAPES = {
    "model.embed_tokens.weight": (60, 8),
    "model.layers.0.self_attn.q_proj.weight": (20, 8),
    "model.layers.0.mlp.up_proj.weight": (40, 8),
    "model.norm.weight": (8,),
}
"""One tensor of each of four kinds: embedding 480 weights, attention 160, mlp 320, norm 8."""


def add_threshold(
    run: Path,
    seed: int,
    shares: Sequence[float] = (0.5, 0.79),
    *,
    reset: str = "grpo",
    problems: int = 30,
    samples: int = 8,
    controls: Sequence[str] = ("threshold", "random-count"),
    full: dict[str, Any] | None = None,
) -> None:
    """`analyze threshold`: "full" is the run's last weights, resetting gives the answers of the method `reset`."""
    place = run / "analysis"
    taus = tuple(0.001 * (1 + number) for number in range(len(shares)))
    names = {"full": "es", "base": "base"}
    names |= {f"{control}-{tau:g}": reset if control == "threshold" else "base" for control in controls for tau in taus}
    asked, answers = made_problems(TASKS[0], problems), {}
    for name, method in names.items():
        digest = {} if name in ("full", "base") else {"model_digest": f"weights-{name}"}
        changes = {**digest, **(full or {} if name == "full" else {})}
        folder = place / "threshold" / name
        write_store(folder, asked, TASKS[0], method, seed, samples, False, changes, False)
        answers[name] = Answer(name, folder, summarise_store(load(folder / "samples.jsonl"), draws=50))
    removed = {
        f"{control}-{tau:g}": Removed(1000, round(1000 * share), share)
        for control in controls
        for tau, share in zip(taus, shares, strict=True)
    }
    rows = threshold_rows(answers, taus, tuple(controls), removed, ())
    write_analysis(place, "threshold", {"settings": {"taus": taus}, "rows": rows}, rows)


def add_drift(run: Path, largest: dict[str, int]) -> None:
    """`analyze drift`: so many of the 100 largest changes in each tensor; metrics.jsonl ends at the same distance."""
    generator = np.random.default_rng(3)
    base = {name: generator.normal(0, 0.05, shape).astype(np.float32) for name, shape in SHAPES.items()}
    after = {name: (array + generator.normal(0, 1e-4, array.shape)).astype(np.float32) for name, array in base.items()}
    for name, count in largest.items():
        after[name].reshape(-1)[:count] += np.float32(0.02)
    found = drift(base, after, TAUS)
    write_analysis(run / "analysis", "drift", drift_values(found, False), drift_rows(found, False))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines[-1]["drift"] = found.total.relative
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def add_null(run: Path) -> None:
    """`analyze null`: two noise-only runs of the same tensors."""
    base = {name: np.full(shape, 0.05, np.float32) for name, shape in SHAPES.items()}
    tallies = simulate(base, [plain_run(3, 4, 0, 0.01, 0.001, seed) for seed in (0, 1)], ("exact",), "float32", TAUS)
    rows = null_rows({name: summarise(tally, "float32") for name, tally in tallies.items()}, None, None)
    write_analysis(run / "analysis", "null", {"rows": rows}, rows)
