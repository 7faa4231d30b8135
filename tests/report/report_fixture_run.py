"""A made-up run folder, written with the project's own writers: what a report is drawn from in tests and by eye."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from broadreach.config import build_config, to_toml
from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest, write_problems
from broadreach.runs.ledger import Ledger, LedgerContents, LedgerEntry, LedgerHeader
from broadreach.types import Problem, Response, Score, StepRecord, Update

ALPHA, POPULATION, SHIFT = 3e-3, 32, 41
PARAMETERS, BASE_NORM = 861_000, 92.0


def make_run(
    root: Path,
    *,
    updates: int = 60,
    planned: int = 60,
    problems: int = 200,
    samples: int = 32,
    evaluated: bool = True,
    private: bool = False,
    seed: int = 0,
) -> Path:
    """Write a whole run folder below `root`; unfinished when `updates` is less than `planned`."""
    generator = np.random.default_rng(seed)
    run = root / "runs" / "demo-seed0"
    run.mkdir(parents=True)
    config = build_config(
        {
            "model": {"path": "nano"},
            "es": {"population": POPULATION, "sigma": 5e-3, "alpha": ALPHA},
            "train": {"batch": 32, "updates": planned},
        }
    )
    (run / "config.toml").write_text(to_toml(config))
    (run / "environment.json").write_text(json.dumps(_environment(), indent=2))
    with open(run / "metrics.jsonl", "w") as file:
        for step in range(1, updates + 1):
            file.write(json.dumps(_metrics(generator, step, planned)) + "\n")
    _write_ledger(run / "ledger.jsonl", generator, updates)
    if updates == planned:
        (run / "DONE").write_text(json.dumps({"updates": updates, "digest": "c0ffee"}) + "\n")
    if evaluated:
        _evaluate(run / "eval", generator, "nano-chain", problems, samples, 3.0, private)
        _evaluate(run / "eval" / "nano-choice", generator, "nano-choice", max(1, problems // 3), samples, 0.2, private)
    return run


def _environment() -> dict[str, Any]:
    return {
        "started": "2026-12-01T12:34:56+00:00",
        "command": "broadreach train demo --set seed=0",
        "commit": "f5ba5e5",
        "versions": {"python": "3.11.7", "broadreach": "0.1.0", "torch": "2.13.0+cpu", "numpy": "2.4.6"},
        "hardware": {"processor": "Made-up CPU @ 2.8 GHz", "cores": 2, "threads": 2, "accelerator": None},
        "platform": "Linux-6.1-x86_64",
        "model_digest": "3f1d9a77c0f14b1a9b7f6f6f2f0c9a11",
        "parameters": PARAMETERS,
        "base_norm": BASE_NORM,
    }


def _metrics(generator: np.random.Generator, step: int, planned: int) -> dict[str, Any]:
    level = 0.25 + 0.6 / (1 + np.exp(-(step - planned / 3) / (planned / 10)))
    mean = float(np.clip(level + generator.normal(0, 0.02), 0, 1))
    spread = float(0.09 * (1.1 - mean) + 0.01)
    seconds = {name: float(abs(generator.normal(m, 0.1 * m))) for name, m in _SECONDS.items()}
    return {
        "step": step,
        "sigma": 5e-3,
        "alpha": ALPHA,
        "updated": True,
        "reward_mean": mean,
        "reward_std": spread,
        "reward_min": max(0.0, mean - 2.2 * spread),
        "reward_max": min(1.0, mean + 2.0 * spread),
        "accuracy": max(0.0, (mean - 0.08) / 0.92),
        "format_rate": float(np.clip(0.72 + 0.4 * (mean - 0.25), 0, 1)),
        "errors": 0,
        "timeouts": int(generator.random() < 0.05),
        "truncated": 0.02,
        "responses": 1024,
        "tokens": int(generator.normal(41_000, 1500)),
        "prompt_tokens": 28_000,
        "seconds": {**seconds, "total": sum(seconds.values())},
        "drift": float(1.01 * ALPHA * np.sqrt(step / POPULATION * PARAMETERS) / BASE_NORM),
        "peak_memory_mb": 900.0 + step,
        "entropy": 0.61 - 0.05 * step / planned if step % 10 == 0 else None,
    }


_SECONDS = {"generation": 3.1, "noise": 0.12, "update": 0.08, "verification": 0.35, "other": 0.05}


def _write_ledger(path: Path, generator: np.random.Generator, updates: int) -> None:
    ledger = Ledger(path, LedgerContents(None, (), False, 0, "")).open()
    ledger.write_header(LedgerHeader(0, "3f1d", 1, "7ab1", "exact", "float32", "one_point"))
    for step in range(1, updates + 1):
        rewards = generator.random(POPULATION)
        z = (rewards - rewards.mean()) / rewards.std()
        coefficients = tuple(int(c) for c in np.round(ALPHA * z / POPULATION * 2.0**SHIFT))
        update = Update(tuple(range(POPULATION)), coefficients, SHIFT)
        record = StepRecord(step, 5e-3, ALPHA, tuple(map(float, rewards)), update, ("p0", "p1"))
        ledger.append(LedgerEntry(record, f"digest-{step}"))
    ledger.close()


def _evaluate(
    root: Path, generator: np.random.Generator, task: str, count: int, samples: int, gain: float, private: bool
) -> None:
    numbers = generator.integers(2, 30, size=(count, 3))
    asked = [
        Problem(f"{task}-{i:04d}", f"Start with {a}. Add {b}, then multiply by {c}. What is it?", str((a + b) * c))
        for i, (a, b, c) in enumerate(numbers.tolist())
    ]
    chances = generator.beta(0.7, 1.5, size=count)
    stronger = chances ** (1 / (1 + gain)) * (generator.random(count) > 0.04)
    for name, rates in (("base", chances), ("final", stronger)):
        header = StoreHeader(
            *(task, "test", f"weights-{name}", "instruction", 0.6, 64, samples, 1, count, problem_digest(asked)),
            private=private,
        )
        store_path = root / name / "samples.jsonl"
        with SampleStore(store_path, header, [problem.id for problem in asked]) as store:
            for problem, rate in zip(asked, rates, strict=True):
                drawn = [_response(generator, problem, float(rate)) for _ in range(samples)]
                store.append(problem.id, [r for r, _ in drawn], [s for _, s in drawn])
        if not private:
            write_problems(store_path, asked)


def _response(generator: np.random.Generator, problem: Problem, rate: float) -> tuple[Response, Score]:
    right = bool(generator.random() < rate)
    form = right or bool(generator.random() < 0.6)
    guess = problem.gold if right else str(int(problem.gold) + int(generator.integers(1, 9)))
    words = problem.question.split()
    steps = f"{words[2]} + {words[4][:-1]} = ?\nthen times {words[8][:-1]}\n"
    text = f"{steps}So the answer is \\boxed{{{guess}}}." if form else f"{steps}I think <b>{guess}</b> & stop."
    tokens = tuple(generator.integers(0, 500, size=int(generator.integers(12, 60))).tolist())
    reward = 1.0 if right else 0.1 if form else 0.0
    reason = "stop" if generator.random() < 0.97 else "length"
    return Response(text, tokens, reason, 27), Score(reward, right, form, guess if form else None, guess, right)


if __name__ == "__main__":
    import sys

    print(make_run(Path(sys.argv[1])))
