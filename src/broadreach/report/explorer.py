"""The problem explorer's data: counts of every problem, and texts packed in blocks that the page unpacks on a click."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from broadreach.evaluation.store import SampleRow, read_problems
from broadreach.evaluation.summary import Json
from broadreach.report.comparison_data import Comparison, Progress, TaskData
from broadreach.report.comparison_runs import ModelStore
from broadreach.report.words import count

TEXT_BYTES = 48_000_000
"""Most bytes of response text on the page, before packing (a third to a sixth of it in the file)."""
BLOCK = 40
"""Problems a block: one click unpacks one block."""
LENGTHS = (6000, 1500, 400)
"""Characters of a response that are kept: the first that lets three responses of each model in."""
SEARCHED = 240
"""Characters of a question that the list shows and searches."""
CORRECT, FORM, TRUNCATED, ERROR, TIMEOUT, CUT = 1, 2, 4, 8, 16, 32
"""Bits of a packed response, as in templates/explorer.js."""


@dataclass(frozen=True, slots=True)
class Explorer:
    """What the page holds of single problems."""

    head: Json
    """Models, tasks and limits, read when the page opens."""
    blocks: dict[str, str]
    """Element id -> gzip and base64 of JSON, unpacked when needed."""
    note: str
    """Which texts are there, in words."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much text is kept: the first `responses` of each problem and model (by kind), `longest` characters each."""

    responses: int
    longest: int


def build_explorer(
    data: Comparison, colours: dict[str, str], cap: int = TEXT_BYTES, progress: Progress | None = None
) -> Explorer:
    """Pack every problem of every task; texts up to `cap` bytes, none of private tasks."""
    limits = choose_limits(data, cap)
    blocks: dict[str, str] = {}
    tasks = []
    for number, task in enumerate(data.tasks):
        if progress is not None:
            progress(f"packing the problems of {task.name}")
        asked = {} if task.private else read_problems(task.base.path)
        blocks[f"x-index-{number}"] = pack(_index(data, task, asked))
        if not task.private:
            for place, block in enumerate(_texts(data, task, asked, limits)):
                blocks[f"x-text-{number}-{place}"] = pack(block)
        tasks.append({"name": task.name, "private": task.private, "problems": task.problems, "target": task.target})
    head = {
        "tasks": tasks,
        "models": _models(data, colours),
        "samples": data.samples,
        "block": BLOCK,
        "columns": [{"key": "base", "name": "base", "label": "Base", "css": "base"}]
        + [{"key": m.key, "name": m.name, "label": m.label, "css": colours[m.key]} for m in data.methods],
        "seeds": sorted({seed for method in data.methods for seed in method.seeds}),
    }
    return Explorer(head, blocks, _note(data, limits, cap))


def choose_limits(data: Comparison, cap: int) -> Limits:
    """The most text that fits under `cap`: full texts of all responses if they do, else fewer, else shorter."""
    sizes = {length: [0] * data.samples for length in LENGTHS}
    for task in data.tasks:
        if task.private:
            continue
        for rows in (rows for store in _stores(data, task) for rows in store.rows()):
            for rank, row in enumerate(by_kind(rows)):
                size = len(row.text)
                for length in LENGTHS:
                    sizes[length][rank] += min(size, length)
    for length in LENGTHS:
        fitting = _fitting(sizes[length], cap)
        if fitting >= min(3, data.samples):
            return Limits(fitting, length)
    return Limits(max(1, _fitting(sizes[LENGTHS[-1]], cap)), LENGTHS[-1])


def by_kind(rows: Sequence[SampleRow]) -> list[SampleRow]:
    """The first correct, the first wrong, the first without the required form, then the second of each, ..."""
    kinds: dict[int, list[SampleRow]] = {0: [], 1: [], 2: []}
    for row in rows:
        kinds[0 if row.correct else 1 if row.format_ok else 2].append(row)
    ranked = [(place, kind, row) for kind, found in kinds.items() for place, row in enumerate(found)]
    return [row for _, _, row in sorted(ranked, key=lambda item: item[:2])]


def pack(value: Any) -> str:
    """JSON -> gzip -> base64: letters, digits, +, / and = only, so nothing in it can end the element it lies in."""
    return base64.b64encode(gzip.compress(json.dumps(value, separators=(",", ":")).encode(), 6, mtime=0)).decode()


def _fitting(sizes: Sequence[int], cap: int) -> int:
    total, fitting = 0, 0
    for size in sizes:
        total += size
        if total > cap:
            break
        fitting += 1
    return fitting


def _stores(data: Comparison, task: TaskData) -> list[ModelStore]:
    """The base, then every seed of every method: the order of `_models`."""
    return [task.base, *(store for method in data.methods for store in task.stores[method.key])]


def _models(data: Comparison, colours: dict[str, str]) -> list[Json]:
    models: list[Json] = [{"key": "base", "label": "Base", "seed": None, "css": "base"}]
    for method in data.methods:
        models += [
            {"key": method.key, "label": method.label, "seed": s, "css": colours[method.key]} for s in method.seeds
        ]
    return models


def _index(data: Comparison, task: TaskData, asked: dict[str, dict[str, str]]) -> Json:
    ids = task.base.table.problem_ids
    return {
        "ids": list(ids),
        "asked": [" ".join(asked.get(name, {}).get("question", "").split())[:SEARCHED] for name in ids],
        "counts": [store.table.correct.sum(axis=1).tolist() for store in _stores(data, task)],
    }


def _texts(data: Comparison, task: TaskData, asked: dict[str, dict[str, str]], limits: Limits) -> Iterator[list[Json]]:
    block: list[Json] = []
    for found in zip(*(store.rows() for store in _stores(data, task)), strict=True):
        name = found[0][0].problem
        texts = [_responses(rows, limits) for rows in found]
        problem = asked.get(name, {})
        question, gold = (problem.get(key, "")[: LENGTHS[0]] for key in ("question", "gold"))
        block.append({"id": name, "question": question, "gold": gold, "texts": texts})
        if len(block) == BLOCK:
            yield block
            block = []
    if block:
        yield block


def _responses(rows: Sequence[SampleRow], limits: Limits) -> list[list[Any]]:
    kept = sorted(by_kind(rows)[: limits.responses], key=lambda row: row.sample)
    return [[row.sample, _bits(row, limits.longest), len(row.tokens), row.text[: limits.longest]] for row in kept]


def _bits(row: SampleRow, longest: int) -> int:
    flags = (
        (CORRECT, row.correct),
        (FORM, row.format_ok),
        (TRUNCATED, row.finish_reason == "length"),
        (ERROR, row.error is not None),
        (TIMEOUT, row.timed_out),
        (CUT, len(row.text) > longest),
    )
    return sum(bit for bit, on in flags if on)


def _note(data: Comparison, limits: Limits, cap: int) -> str:
    private = [task.name for task in data.tasks if task.private]
    said = f"The terms of {', '.join(private)} forbid showing texts: counts only. " if private else ""
    if len(private) == len(data.tasks):
        return said.strip()
    if limits.responses < data.samples or limits.longest < LENGTHS[0]:
        return said + (
            f"The page holds at most {count(cap / 1e6)} MB of text: the first {limits.responses} of {data.samples} "
            f"responses of each model, correct, wrong and malformed ones in turn, up to {count(limits.longest)} "
            "characters each. The sample stores have all."
        )
    return said + f"All {data.samples} responses of each model, up to {count(limits.longest)} characters each."
