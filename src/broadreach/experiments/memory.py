"""How much memory each cell takes at most, so that cells run side by side only where all of them fit.

Measured where a finished run of the same settings (another seed) lies in the folder, and counted otherwise: weights,
what an optimiser keeps, activations, keys and values, member weights, and what any process takes. Main memory only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from broadreach.config import Config, flatten
from broadreach.engines.decode import LOGITS
from broadreach.engines.runner import common_prefix
from broadreach.engines.select import SMALL, stored_parameters
from broadreach.experiments.cells import Cell
from broadreach.runs.folder import RunFolder, find_runs
from broadreach.training.budget import budget_of
from broadreach.training.estimate import BYTES, GRPO_BYTES
from broadreach.training.grpo_plan import make_plan
from broadreach.training.restore import SMALL_MODEL
from broadreach.training.setup import Prepared, prepare
from broadreach.training.stages import plan_stages
from broadreach.types import UserError

MIB = 1 << 20
IMPORTS = 572 * MIB
"""A process that has imported everything (docs/results.md)."""
ALLOWANCE = 400 * MIB
"""Working memory of a process beside what is counted here: the figure of benchmarks/memory.py."""
FREE = ("seed", "run.", "eval.", "verify.", "train.updates", "train.data_seed", "train.reuse")
"""Settings in which two runs of equal memory may differ."""
ACTIVATIONS = (10, 4)
"""Float32 numbers that the backward pass of one layer and position keeps, in units of the hidden and of the
intermediate size: 8.8 and 9.6 of the first were counted for SmolLM2 and nano, beside 4 of the second."""
HELD = 2
"""A process holds so many times what its backward pass keeps, temporaries and unreturned pieces included: with it the
estimate lies above what benchmarks/methods_memory.py measures in a first update, which has no moments of Adam yet."""
SHARE = 0.8
"""Of the memory available, what cells may take together unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model decides its memory; 0 where config.json does not say."""

    parameters: int
    layers: int
    hidden: int
    intermediate: int
    key_values: int
    """Key and value numbers of one layer and position."""
    vocabulary: int


def sized(cells: Sequence[Cell], folder: Path) -> list[Cell]:
    """The cells with the memory they take at most; those without settings stay at 0, unknown.

    UserError for whatever would stop the training of a cell before its first update: model, data, prompts, batches.
    """
    measured = _measured(folder)
    known: dict[str, tuple[Prepared, Shape]] = {}
    return [
        cell if cell.config is None else replace(cell, memory=_of_run(cell.config, measured, known)) for cell in cells
    ]


def budget(memory_gb: float | None) -> float:
    """Bytes that all cells may take together: `memory_gb` (10^9 bytes), or SHARE of what is available."""
    if memory_gb is None:
        return SHARE * available_memory()
    if not 0 < memory_gb < math.inf:
        raise UserError(f"--memory-gb {memory_gb:g}: give the memory that the runs may take together, for example 16")
    return memory_gb * 1e9


def sentence(cells: Sequence[Cell], workers: int, memory: float) -> str:
    """How many runs at a time, within what, and what they take, in words."""
    within = f"within {memory / 1e9:.1f} GB" if memory < math.inf else "(available memory unknown)"
    ordered = sorted((cell for cell in cells if cell.memory), key=lambda cell: cell.memory)
    least, most = (f"{cell.memory / 1e9:.1f} GB" for cell in (ordered[0], ordered[-1])) if ordered else ("", "")
    each = f"; one takes at most {least}" if ordered else ""
    if least != most:
        each += f" ({ordered[0].name}) to {most} ({ordered[-1].name})"
    return f"{len(cells)} run{'s' * (len(cells) > 1)}, up to {workers} at a time {within}{each}"


def available_memory() -> float:
    """Bytes that new processes may take on this machine (within its control group); infinite where nothing tells."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return math.inf
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
    except (OSError, ValueError):
        return float(free)
    return float(min(free, limit - used))


def model_shape(model_dir: Path) -> Shape:
    """Read config.json and the headers of the weights."""
    values = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
    values = values.get("text_config", values)
    hidden = _first(values, ("hidden_size", "n_embd", "d_model"))
    heads = _first(values, ("num_attention_heads", "n_head", "num_heads")) or 1
    width = _first(values, ("head_dim",)) or hidden // heads
    return Shape(
        parameters=stored_parameters(model_dir),
        layers=_first(values, ("num_hidden_layers", "n_layer", "num_layers")),
        hidden=hidden,
        intermediate=_first(values, ("intermediate_size", "n_inner", "d_ff")) or 4 * hidden,
        key_values=2 * width * (_first(values, ("num_key_value_heads",)) or heads),
        vocabulary=_first(values, ("vocab_size",)),
    )


def training_peak(config: Config, prepared: Prepared, shape: Shape) -> int:
    """Bytes of the training process of one method at its peak, at most."""
    width = BYTES[config.model.dtype]
    if config.train.method == "grpo":
        held = shape.parameters * (GRPO_BYTES + width) + _backward(config, prepared, shape)
        return IMPORTS + ALLOWANCE + held + _cache(config, prepared, shape, config.train.batch * config.grpo.group_size)
    base = 4 if shape.parameters <= SMALL_MODEL or config.es.anchor_decay > 0 else 0
    together, members = _members(config, shape)
    rows = config.train.batch * together
    return IMPORTS + ALLOWANCE + shape.parameters * (4 + width + base) + members + _cache(config, prepared, shape, rows)


def evaluation_peak(config: Config, prepared: Prepared, shape: Shape) -> int:
    """Bytes of the evaluating process at its peak, at most; its prompts are taken to be as long as those trained on."""
    weights = shape.parameters * (4 + BYTES[config.model.dtype])
    return IMPORTS + ALLOWANCE + weights + _cache(config, prepared, shape, config.engine.rows)


def _of_run(config: Config, measured: dict[str, float], known: dict[str, tuple[Prepared, Shape]]) -> int:
    """The larger of training and evaluation; of a composition, of its largest stage."""
    stages = [stage for _, stage in plan_stages(config, RunFolder("."))] if config.train.stages else [config]
    stages = [stage.model_copy(update={"model": config.model}) for stage in stages]
    parts = [(stage, *_prepared(stage, known)) for stage in stages]
    before = measured.get(_alike(config))
    training = max(training_peak(*part) for part in parts) if before is None else int(before * MIB)
    return max(training, evaluation_peak(config, *parts[0][1:]))


def _prepared(config: Config, known: dict[str, tuple[Prepared, Shape]]) -> tuple[Prepared, Shape]:
    """Prompts and model, read once for all cells that share them."""
    key = json.dumps([config.model.path, config.task.model_dump(), config.train.max_prompt_tokens,
                      config.sampling.max_new_tokens], default=str)  # fmt: skip
    if key not in known:
        prepared = prepare(config)
        known[key] = prepared, model_shape(prepared.model_dir)
    return known[key]


def _backward(config: Config, prepared: Prepared, shape: Shape) -> int:
    """What one micro-batch takes; TRL makes no whole logits."""
    positions = make_plan(config, prepared).micro_batch * (_longest(prepared) + config.sampling.max_new_tokens)
    kept = ACTIVATIONS[0] * shape.hidden + ACTIVATIONS[1] * shape.intermediate
    return HELD * 4 * positions * shape.layers * kept


def _members(config: Config, shape: Shape) -> tuple[int, int]:
    """How many members are served at once, and the bytes of their weights; `hf` serves one, counted already."""
    kind = config.engine.kind
    if kind not in ("auto", "population") or (kind == "auto" and shape.parameters > SMALL):
        return 1, 0
    size = shape.parameters * BYTES[config.model.dtype]
    count = min(config.es.evaluations, max(1, int(config.engine.memory_gb * 1e9 / 2) // max(size, 1)))
    return count, count * size


def _cache(config: Config, prepared: Prepared, shape: Shape, rows: int) -> int:
    """Keys and values of the rows decoded at once, within the engine's budget; what prompts share is held once."""
    shared = len(common_prefix([request.prompt for request in prepared.requests]))
    columns = _longest(prepared) - shared + config.sampling.max_new_tokens
    together = min(rows, config.engine.rows, max(1, LOGITS // max(shape.vocabulary, 1)))
    column = shape.layers * shape.key_values * BYTES[config.model.dtype]
    return min(together * columns * column, int(config.engine.memory_gb * 1e9)) + shared * column


def _longest(prepared: Prepared) -> int:
    return max(len(request.prompt) for request in prepared.requests)


def _measured(folder: Path) -> dict[str, float]:
    """Settings -> largest measured peak in MiB of the finished runs in a folder."""
    found: dict[str, float] = {}
    for run in find_runs(folder):
        try:
            key, peak = _alike(run.config()), budget_of(run).peak_memory_mb
        except (UserError, KeyError):
            continue
        if run.is_done() and peak:
            found[key] = max(peak, found.get(key, 0.0))
    return found


def _alike(config: Config) -> str:
    return json.dumps({k: v for k, v in flatten(config).items() if not k.startswith(FREE)}, sort_keys=True, default=str)


def _first(values: dict[str, Any], names: Iterable[str]) -> int:
    return next((int(values[name]) for name in names if isinstance(values.get(name), int)), 0)
