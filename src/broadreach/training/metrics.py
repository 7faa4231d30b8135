"""The line that one update leaves in metrics.jsonl, and the file itself."""

from __future__ import annotations

import json
import math
import resource
import statistics
from pathlib import Path
from typing import Any

from broadreach.fleet.base import Evaluation
from broadreach.runs.files import explained_disk_errors, write_atomically
from broadreach.tasks.grading import mean_reward
from broadreach.tasks.reward_function import SKIPPED
from broadreach.types import Score, StepRecord, UserError


def member_rewards(evaluation: Evaluation, problem_ids: list[str]) -> tuple[float, ...]:
    """Mean reward of each member over its graded responses; UserError names the problem of a non-finite reward."""
    return tuple(_mean_reward(result.scores, problem_ids) for result in evaluation.members)


def _mean_reward(scores: tuple[Score, ...], problem_ids: list[str]) -> float:
    for score, problem_id in zip(scores, problem_ids, strict=True):
        if not math.isfinite(score.reward):
            raise UserError(
                f"problem {problem_id}: the reward is {score.reward}; "
                "rewards must be finite numbers, check the reward function"
            )
    return mean_reward(scores) or 0.0


def update_metrics(record: StepRecord, evaluation: Evaluation) -> dict[str, Any]:
    """Reward, accuracy, format, errors, tokens and seconds of one update."""
    scores = [score for result in evaluation.members for score in result.scores]
    responses = [response for result in evaluation.members for response in result.responses]
    return {
        "step": record.step,
        "sigma": record.sigma,
        "alpha": record.alpha,
        "updated": record.update is not None,
        "reward_mean": statistics.fmean(record.rewards),
        "reward_std": statistics.pstdev(record.rewards),
        "reward_min": min(record.rewards),
        "reward_max": max(record.rewards),
        "accuracy": share(score.correct for score in scores),
        "format_rate": share(score.format_ok for score in scores),
        "errors": sum(score.error not in (None, SKIPPED) and not score.timed_out for score in scores),
        "timeouts": sum(score.timed_out for score in scores),
        "skipped": sum(score.error == SKIPPED for score in scores),
        "truncated": share(response.finish_reason == "length" for response in responses),
        "responses": len(responses),
        "tokens": sum(len(response.tokens) for response in responses),
        "prompt_tokens": sum(response.prompt_tokens for response in responses),
        "seconds": dict(evaluation.seconds),
    }


def share(flags: Any) -> float:
    """Share of true values; 0 for none."""
    values = [bool(flag) for flag in flags]
    return sum(values) / len(values) if values else 0.0


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class MetricsFile:
    """Appends to metrics.jsonl; on a resume, lines past the ledger's last step are cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rewind(self, last_step: int) -> None:
        """Keep only the lines of steps that the ledger has."""
        if not self.path.exists():
            return
        kept = [line for line in self.path.read_text().splitlines() if _step(line) <= last_step]
        write_atomically(self.path, "".join(f"{line}\n" for line in kept))

    def append(self, metrics: dict[str, Any]) -> None:
        """Add one line."""
        with explained_disk_errors(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(metrics) + "\n")


def _step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return float("inf")
