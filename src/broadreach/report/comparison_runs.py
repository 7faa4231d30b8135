"""One run of a comparison, as its files tell it: settings, curves, costs and sample stores."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from broadreach.evaluation.store import SampleRow
from broadreach.evaluation.summary import Json
from broadreach.evaluation.table import SampleTable, load, whole_problems
from broadreach.report.files import object_in, text_of
from broadreach.types import UserError

NOT_TASKS = ("curve", "baselines", "base", "final", "latest", "greedy")
"""Folders of RUN/eval that hold no held-out task."""
_IGNORED = ("seed", "run", "eval", "verify", "engine")
"""Settings in which two seeds of one method may differ."""


@dataclass(frozen=True, slots=True)
class ModelStore:
    """The responses of one model on one task."""

    path: Path
    """samples.jsonl."""
    table: SampleTable
    entropy: Json
    """entropy.json beside it; empty where there is none."""
    greedy: SampleTable | None
    """One greedy response a problem, where they were drawn."""

    def rows(self) -> Iterator[list[SampleRow]]:
        """The responses of each problem."""
        return whole_problems(self.path)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run folder."""

    path: Path
    method: str
    """"es", "grpo", or the stages: "es->grpo"."""
    seed: int
    config: Json
    environment: Json
    metrics: list[Json]
    budget: Json
    """budget.json; empty where there is none."""
    curve: list[Json]
    """curve.jsonl: evaluations during training."""
    done: bool
    base: dict[str, ModelStore]
    after: dict[str, ModelStore]
    """By task, as `base`."""
    target: str
    """The training task, or the first target of the suite."""
    held_out: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What fixes the training besides the seed, as section.key -> value."""
        unused = {"es": "grpo", "grpo": "es"}.get(self.method)
        flat: dict[str, Any] = {}
        for section, values in self.config.items():
            if section in _IGNORED or section == unused:
                continue
            entries = values.items() if isinstance(values, dict) else [("", values)]
            flat.update({f"{section}.{key}".rstrip("."): value for key, value in entries})
        for key in ("train.reuse", "train.data_seed", "model.local_files_only"):
            flat.pop(key, None)
        return flat

    def setting(self, section: str, key: str, default: Any = None) -> Any:
        """One value of the resolved configuration."""
        return self.config.get(section, {}).get(key, default)


def read_record(path: str | Path, progress: Any = None, tables: dict[str, SampleTable] | None = None) -> RunRecord:
    """Read a run folder, finished or not; `tables` remembers what was read, by the bytes of the file.

    UserError when it is no run folder, was not evaluated, or lacks a sample store.
    """
    folder = Path(path)
    config = _config(folder)
    stages = config.get("train", {}).get("stages") or []
    method = "->".join(str(stage["method"]) for stage in stages) or str(config.get("train", {}).get("method", "es"))
    suite = object_in(text_of(folder / "eval" / "suite.json"))
    done = (folder / "DONE").exists()
    base: dict[str, ModelStore] = {}
    after: dict[str, ModelStore] = {}
    for root in _evaluated(folder):
        before, trained = _pair(root, folder, done, {} if tables is None else tables)
        if progress is not None:
            progress(f"reading {trained.path.parent}")
        base[before.table.header.task], after[before.table.header.task] = before, trained
    own = str(config.get("task", {}).get("name", ""))
    target = own if own in base else str(suite.get("target") or next(iter(base)))
    targets = {target, *map(str, suite.get("targets", []))}
    return RunRecord(
        path=folder,
        method=method,
        seed=int(config.get("seed", 0)),
        config=config,
        environment=object_in(text_of(folder / "environment.json")),
        metrics=read_lines(folder / "metrics.jsonl") or _stage_lines(folder, len(stages)),
        budget=object_in(text_of(folder / "budget.json")),
        curve=read_lines(folder / "curve.jsonl"),
        done=done,
        base=base,
        after=after,
        target=target,
        held_out=tuple(name for name in base if name not in targets),
    )


def read_store(path: Path, tables: dict[str, SampleTable]) -> ModelStore:
    """A finished store with what lies beside it; UserError when it is missing or unfinished.

    The runs of a study hold copies of one base: equal files are parsed once.
    """
    digest = _digest(path)
    table = tables[digest] if digest in tables else load(path)
    tables[digest] = table
    if not table.complete:
        raise UserError(
            f"{path} holds {len(table.problem_ids)} of {table.header.problems} problems: finish the evaluation first, "
            "`broadreach eval` goes on where it stopped"
        )
    greedy = path.parent / "greedy" / "samples.jsonl"
    single = load(greedy) if greedy.exists() else None
    whole = single if single is not None and single.problem_ids == table.problem_ids else None
    return ModelStore(path, table, object_in(text_of(path.parent / "entropy.json")), whole)


def read_lines(path: Path) -> list[Json]:
    """The whole lines of a JSONL file; empty where there is none."""
    found: list[Json] = []
    for line in (text_of(path) or "").split("\n"):
        try:
            value = json.loads(line) if line else None
        except ValueError:
            continue
        if isinstance(value, dict) and "step" in value:
            found.append(value)
    return found


def _config(folder: Path) -> Json:
    text = text_of(folder / "config.toml")
    if not text:
        raise UserError(f"{folder} is not a run folder (no config.toml in it); `broadreach runs` lists the runs")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{folder / 'config.toml'} is not valid TOML: {error}; restore it from a copy") from None


def _evaluated(folder: Path) -> list[Path]:
    """RUN/eval for the training task and RUN/eval/NAME for the others, those that hold an evaluation."""
    root = folder / "eval"
    others = [sub for sub in sorted(root.glob("*")) if sub.is_dir() and sub.name not in NOT_TASKS]
    found = [place for place in [root, *others] if (place / "base").is_dir()]
    if not found:
        raise UserError(f"{folder} has not been evaluated: run `broadreach eval {folder}` first")
    return found


def _pair(root: Path, folder: Path, done: bool, tables: dict[str, SampleTable]) -> tuple[ModelStore, ModelStore]:
    names = ("final", "latest") if done else ("latest", "final")
    trained = next((root / name for name in names if (root / name).is_dir()), root / names[0])
    stores = []
    for place in (root / "base", trained):
        if not (place / "samples.jsonl").exists():
            raise UserError(f"{place / 'samples.jsonl'} is missing: run `broadreach eval {folder}` to sample it")
        stores.append(read_store(place / "samples.jsonl", tables))
    return stores[0], stores[1]


def _digest(path: Path) -> str:
    state = xxhash.xxh3_128()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _stage_lines(folder: Path, stages: int) -> list[Json]:
    """The lines of a sequence that is not finished: they are gathered in the run folder only at its end."""
    lines: list[Json] = []
    for number in range(1, stages + 1):
        for path in folder.glob(f"stage-{number}-*/metrics.jsonl"):
            start = len(lines)
            lines += [{**row, "step": int(row["step"]) + start, "stage": number} for row in read_lines(path)]
    return lines


def differing_settings(a: RunRecord, b: RunRecord) -> Mapping[str, tuple[Any, Any]]:
    """Training settings in which two runs differ, the seed aside."""
    first, second = a.settings, b.settings
    return {
        key: (first.get(key), second.get(key))
        for key in sorted(first.keys() | second.keys())
        if first.get(key) != second.get(key)
    }
