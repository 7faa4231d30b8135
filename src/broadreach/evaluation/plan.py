"""What an evaluation asks, how it draws and how it serves: one plan, made from the settings of a run."""

from __future__ import annotations

from dataclasses import dataclass

from broadreach.config import Config, EngineSettings, TaskSettings, VerifySettings


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """One task, and how it is asked."""

    task: TaskSettings
    split: str
    samples: int
    temperature: float
    max_new_tokens: int
    problems: int | None
    """Only the first so many problems of the split."""
    seed: int
    dtype: str
    engine: EngineSettings
    verify: VerifySettings
    greedy: bool = False
    """One greedy response a problem besides."""
    entropy: bool = False
    """Token entropy on the kept responses besides."""


def evaluation_plan(config: Config) -> EvaluationPlan:
    """The plan of `broadreach eval` under these settings."""
    wanted = config.eval
    return EvaluationPlan(
        task=config.task,
        split=wanted.split,
        samples=wanted.samples,
        temperature=wanted.temperature,
        max_new_tokens=wanted.max_new_tokens or config.sampling.max_new_tokens,
        problems=wanted.problems,
        seed=wanted.seed,
        dtype=config.model.dtype,
        engine=config.engine,
        verify=config.verify,
        greedy=wanted.greedy and wanted.temperature > 0,
        entropy=wanted.entropy,
    )
