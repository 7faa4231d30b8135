"""Made-up run folders of several methods and seeds on the same problems, through the project's own writers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from broadreach.config import build_config, to_toml
from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest, write_problems
from broadreach.types import Problem, Response, Score

TASKS = ("nano-chain", "nano-choice")
METHODS = ("es", "grpo", "es->grpo")
HOSTILE = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2"><!-- ]]> &lt;b&gt; \u2028 \ud800'
"""A response that must stay text whatever happens to it."""
SHAPES = {"base": (1.0, 0.0), "es": (1.9, 0.01), "grpo": (3.2, 0.22), "es->grpo": (3.4, 0.06), "grpo->es": (3.0, 0.12)}
"""How much a method sharpens the chances of a problem, and the share of problems it loses for good."""
WORDS = ["then", "add", "take", "the", "sum", "so", "that", "half", "of", "it", "and", "carry", "one", "over", "check"]
TEXT = np.random.default_rng(7).choice(WORDS, size=400).tolist()


def make_runs(
    root: Path,
    methods: tuple[str, ...] = METHODS,
    seeds: tuple[int, ...] = (0, 1),
    tasks: tuple[str, ...] = TASKS,
    **options: Any,
) -> list[Path]:
    """One run folder for each method and seed."""
    return [make_run(root, method, seed, tasks, **options) for method in methods for seed in seeds]


def make_run(
    root: Path,
    method: str,
    seed: int = 0,
    tasks: tuple[str, ...] = TASKS,
    *,
    name: str | None = None,
    problems: int = 120,
    samples: int = 8,
    updates: int = 12,
    done: bool = True,
    private: bool = False,
    settings: dict[str, Any] | None = None,
    header: dict[str, Any] | None = None,
    extras: bool = True,
) -> Path:
    """One run folder: `header` changes settings of its sample stores, `settings` those of its configuration."""
    run = root / (name or f"{method.replace('->', '-')}-seed{seed}")
    run.mkdir(parents=True)
    train: dict[str, Any] = {"batch": 32, "updates": updates, "method": "es" if "->" in method else method}
    if "->" in method:
        train["stages"] = method
    values: dict[str, Any] = {"seed": seed, "model": {"path": "nano"}, "task": {"name": tasks[0]}, "train": train}
    (run / "config.toml").write_text(to_toml(build_config({**values, **(settings or {})})))
    (run / "environment.json").write_text(json.dumps({"commit": "f5ba5e5", "started": "2026-12-01T12:00:00+00:00"}))
    generator = np.random.default_rng([seed, sorted(SHAPES).index(method)])
    _lines(run / "metrics.jsonl", [_metrics(generator, method, step, updates) for step in range(1, updates + 1)])
    (run / "budget.json").write_text(json.dumps(_budget(method, updates)))
    if done:
        (run / "DONE").write_text(json.dumps({"updates": updates}) + "\n")
    for place, task in enumerate(tasks):
        folder = run / "eval" / ("" if place == 0 else task)
        asked = made_problems(task, problems)
        _base(root, folder / "base", (asked, task, "base", 0, samples, private, header or {}, extras))
        after = "final" if done else "latest"
        write_store(folder / after, asked, task, method, seed, samples, private, header or {}, extras)
    if extras:
        _curve(run, method, seed, tasks[0], updates)
        place, asked = run / "eval/baselines/temperature-1.0", made_problems(tasks[0], problems)
        write_store(place, asked, tasks[0], "base", 77, samples, private, {"temperature": 1.0, **(header or {})}, False)
    return run


def _base(root: Path, folder: Path, what: tuple[Any, ...]) -> None:
    """The base of every run is the same: made once below `root`, then copied."""
    made = root / f".base-{what[1]}-{len(what[0])}-{what[4]}-{what[5]}-{what[7]}-{sorted(what[6].items())}"
    if not made.exists():
        write_store(made, *what)
    shutil.copytree(made, folder)


def _metrics(generator: np.random.Generator, method: str, step: int, planned: int) -> dict[str, Any]:
    last = method.rsplit("->", maxsplit=1)[-1]
    reward = 0.3 + (0.4 if last == "es" else 0.5) * (1 - np.exp(-3 * step / planned)) + generator.normal(0, 0.015)
    drift = (0.03 if last == "es" else 0.0008) * np.sqrt(step) * (1 + generator.normal(0, 0.01))
    total = 4.0 if last == "es" else 9.0
    return {
        "step": step,
        "reward_mean": float(reward),
        "accuracy": float(reward) - 0.05,
        "format_rate": 0.9,
        "updated": True,
        "responses": 1024 if last == "es" else 256,
        "tokens": 41_000 if last == "es" else 10_300,
        "prompt_tokens": 28_000 if last == "es" else 7_000,
        "seconds": {"generation": 0.7 * total, "update": 0.3 * total, "total": total},
        "peak_memory_mb": 900.0 if last == "es" else 1400.0,
        "drift": float(abs(drift)),
        "entropy": float(0.6 - (0.0 if last == "es" else 0.3) * step / planned) if last == "grpo" else None,
    }


def _budget(method: str, updates: int) -> dict[str, Any]:
    rows = [_metrics(np.random.default_rng(0), method, step, updates) for step in range(1, updates + 1)]
    found: dict[str, Any] = {key: sum(row[key] for row in rows) for key in ("responses", "tokens", "prompt_tokens")}
    positions = found["tokens"] + found["prompt_tokens"]
    backward = positions if "grpo" in method else 0
    phases = {name: sum(row["seconds"][name] for row in rows) for name in ("generation", "update", "total")}
    peak = max(row["peak_memory_mb"] for row in rows)
    return {
        "updates": updates, **found, "forward_positions": positions + 3 * backward, "backward_positions": backward,
        "seconds": phases, "peak_memory_mb": peak,
    }  # fmt: skip


def made_problems(task: str, count: int) -> list[Problem]:
    """The first problems of a task."""
    numbers = np.random.default_rng(len(task)).integers(2, 30, size=(count, 3)).tolist()
    return [
        Problem(f"{task}-{i:04d}", f"Start with {a}. Add {b}, then multiply by {c}. What is it?", str((a + b) * c))
        for i, (a, b, c) in enumerate(numbers)
    ]


def _chances(task: str, method: str, seed: int, count: int) -> np.ndarray[Any, Any]:
    base = np.random.default_rng(len(task)).beta(0.6, 1.6, size=count)
    gain, lost = SHAPES[method]
    if task != TASKS[0] and method != "base":
        gain = 1 + (gain - 1) * 0.12
    keep = np.random.default_rng([seed, 5, len(method)]).random(count) > lost
    return base ** (1 / gain) * keep


def write_store(
    folder: Path,
    asked: list[Problem],
    task: str,
    method: str,
    seed: int,
    samples: int,
    private: bool,
    changes: dict[str, Any],
    entropy: bool,
) -> None:
    """A finished sample store of one model on one task, and entropy.json beside it."""
    values: dict[str, Any] = {
        "task": task, "split": "test", "model_digest": f"weights-{method}-{seed if method != 'base' else 0}",
        "instruction_hash": "instruction", "temperature": 0.6, "max_new_tokens": 64, "samples": samples, "seed": 1,
        "problems": len(asked), "problem_digest": problem_digest(asked), "private": private, **changes,
    }  # fmt: skip
    generator = np.random.default_rng([seed, len(method), len(task)])
    ids = [problem.id for problem in asked]
    with _unsynced(), SampleStore(folder / "samples.jsonl", StoreHeader(**values), ids) as store:
        for place, (problem, rate) in enumerate(zip(asked, _chances(task, method, seed, len(asked)), strict=True)):
            draws = generator.random((samples, 6)).tolist()
            drawn = [_response(draws[i], problem, float(rate), place == 0 and i == 0) for i in range(samples)]
            store.append(problem.id, [r for r, _ in drawn], [s for _, s in drawn])
    if not private:
        write_problems(folder / "samples.jsonl", asked)
    if entropy:
        level = 0.6 * (0.55 if method == "grpo" else 1.0)
        each = {problem.id: float(abs(level + generator.normal(0, 0.05))) for problem in asked}
        mean = float(np.mean(list(each.values())))
        own = {"value": mean, "low": mean - 0.01, "high": mean + 0.01, "tokens": 1000, "surprise": mean}
        said = {"version": 1, "per_problem": 4, "problems": len(asked), "own": own, "base": None}
        (folder / "entropy.json").write_text(json.dumps({**said, "problem_entropy": {"own": each, "base": each}}))


@contextmanager
def _unsynced() -> Iterator[None]:
    """Made-up stores need not survive a power cut, and syncing every problem takes most of their time."""
    kept, os.fsync = os.fsync, lambda _: None
    try:
        yield
    finally:
        os.fsync = kept


def _response(draws: list[float], problem: Problem, rate: float, hostile: bool) -> tuple[Response, Score]:
    right = draws[0] < rate
    form = right or draws[1] < 0.6
    guess = problem.gold if right else str(int(problem.gold) + 1 + int(8 * draws[2]))
    start = int(300 * draws[3])
    steps = " ".join(TEXT[start : start + 4 + int(26 * draws[4])])
    text = HOSTILE if hostile else f"{steps}.\nSo the answer is \\boxed{{{guess}}}." if form else f"{steps} … {guess}"
    reason = "stop" if draws[5] < 0.93 else "length"
    reward = 1.0 if right else 0.1 if form else 0.0
    tokens = tuple(range(8 + int(32 * draws[4])))
    return Response(text, tokens, reason, 27), Score(reward, right, form, guess if form else None, guess, right)


def _curve(run: Path, method: str, seed: int, task: str, updates: int) -> None:
    """Evaluations during training: stores of 40 problems and curve.jsonl."""
    lines = []
    asked = made_problems(task, 40)
    generator = np.random.default_rng([seed, 9])
    for step in (0, updates // 2, updates):
        share = step / updates
        label = "base" if step == 0 else method
        folder = run / "eval" / "curve" / task / f"step-{step}"
        write_store(folder, asked, task, label, seed, 8, False, {}, False)
        jitter = generator.normal(0, 0.01)
        rise = {"es": 0.22, "grpo": 0.3, "es->grpo": 0.36, "grpo->es": 0.26}[method] * share
        wide = {"es": 0.12, "grpo": -0.08, "es->grpo": 0.09, "grpo->es": 0.02}[method] * share + jitter / 2
        levels = {1: 0.25 + rise + jitter, 16: 0.6 + wide, 32: 0.7 + wide}
        around = {k: {"value": v, "low": v - 0.05, "high": v + 0.05} for k, v in levels.items()}
        fall = 0.3 if method.endswith("grpo") else 0.02
        nats = 0.6 - (fall + 0.04 * rise) * share + jitter
        lines.append(
            {
                "step": step,
                "task": task,
                "problems": 40,
                "samples": 8,
                "temperature": 0.6,
                "pass_at_1": around[1],
                "pass_at_k": {"16": around[16], "32": around[32]},
                "entropy": {"value": nats, "low": nats - 0.02, "high": nats + 0.02},
            }
        )
    _lines(run / "curve.jsonl", lines)


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    import sys

    every = tuple(name for name in SHAPES if name != "base")
    for path in make_runs(
        Path(sys.argv[1]), every, (0, 1, 2), ("nano-chain", "nano-choice", "nano-context"), samples=32
    ):
        print(path)
