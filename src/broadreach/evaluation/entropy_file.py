"""entropy.json beside a sample store: the entropy on the model's own responses, and on the base's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from broadreach.engines.base import Engine
from broadreach.evaluation.entropy import EntropyReport, Sums, add_scores, report, retained
from broadreach.evaluation.statistics import Interval, paired_bootstrap
from broadreach.evaluation.summary import Json, write_json
from broadreach.types import UserError

PER_PROBLEM = 4
"""Responses of each problem that are scored."""
CHUNK = 256
"""Responses scored between two writes of what is done."""


def write_entropy(
    serving: Callable[[], Engine],
    prompts: Mapping[str, Sequence[int]],
    model_digest: str,
    out: Path,
    base: Path | None = None,
    per_problem: int = PER_PROBLEM,
) -> Json:
    """Measure into out/entropy.json on the responses of out/samples.jsonl and of the store `base`, and return it.

    A finished measurement of the same weights and responses is returned as it is; an interrupted one goes on. The
    engine is asked for only when there is something to score. UserError when a store is missing or empty.
    """
    own = out / "samples.jsonl"
    stores = {"own": own} if base is None or base.resolve() == own.resolve() else {"own": own, "base": base}
    keys = {"model_digest": model_digest, "per_problem": per_problem, "base": base is not None}
    keys |= {f"{kind}_store": _file_digest(store) for kind, store in stores.items()}
    target, aside = out / "entropy.json", out / "entropy.partial.json"
    found = _read(target)
    if found.get("measured_on") == keys:
        return found
    found = _read(aside)
    progress: Json = found if found.get("measured_on") == keys else {"measured_on": keys}
    reports: dict[str, EntropyReport] = {}
    for kind, store in stores.items():
        kept = retained(store, prompts, per_problem=per_problem)
        part = progress.setdefault(kind, {"done": 0, "sums": {}})
        sums: Sums = part["sums"]
        for start in range(part["done"], len(kept), CHUNK):
            add_scores(serving(), kept[start : start + CHUNK], sums)
            part["done"] = start + CHUNK
            write_json(progress, aside)
        reports[kind] = report(sums)
    if base is not None:
        reports.setdefault("base", reports["own"])
    made = _content(reports, per_problem, keys)
    write_json(made, target)
    aside.unlink(missing_ok=True)
    return made


def read_entropy(folder: str | Path) -> Json | None:
    """The content of entropy.json in the folder of a store; None when it was not measured."""
    return _read(Path(folder) / "entropy.json") or None


def entropy_difference(a: Json, b: Json, kind: str = "base") -> Interval:
    """Paired difference a - b of two entropy.json in nats per token, over their common problems.

    `kind` "base" compares on the same texts, "own" on what each model writes itself. UserError when there are none.
    """
    first, second = (found["problem_entropy"].get(kind) or {} for found in (a, b))
    common = [problem for problem in first if problem in second]
    if not common:
        raise UserError(f"no problem has an entropy on the {kind} responses in both: evaluate both with --entropy")
    return paired_bootstrap(np.array([first[p] for p in common]), np.array([second[p] for p in common]))


def _content(reports: Mapping[str, EntropyReport], per_problem: int, keys: Json) -> Json:
    return {
        "version": 1,
        "per_problem": per_problem,
        "problems": reports["own"].entropy.n,
        "own": _summary(reports["own"]),
        "base": _summary(reports["base"]) if "base" in reports else None,
        "problem_entropy": {
            kind: dict(reports[kind].of_problem) if kind in reports else {} for kind in ("own", "base")
        },
        "measured_on": keys,
    }


def _summary(found: EntropyReport) -> Json:
    return {
        "value": found.entropy.value,
        "low": found.entropy.low,
        "high": found.entropy.high,
        "tokens": found.tokens,
        "surprise": found.surprise.value,
    }


def _file_digest(path: Path) -> str:
    state = xxhash.xxh3_128()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                state.update(block)
    except OSError as error:
        raise UserError(f"{path}: no sample store ({error.strerror}); run `broadreach eval` first") from None
    return state.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
