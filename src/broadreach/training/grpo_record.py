"""The line that one GRPO update leaves in metrics.jsonl, and the end of runs whose rewards never differ."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from broadreach.config import Config
from broadreach.fleet.base import Evaluation
from broadreach.tasks.reward_function import SKIPPED
from broadreach.training.grpo_plan import GrpoPlan
from broadreach.training.metrics import member_rewards, update_metrics
from broadreach.training.reporter import Reporter
from broadreach.types import StepRecord, UserError

LOGGED = {
    "loss": "loss",
    "kl": "kl",
    "entropy": "entropy",
    "grad_norm": "grad_norm",
    "clip_share": "clip_ratio/region_mean",
    "learning_rate": "learning_rate",
}
"""Our name -> the name in TRL's logs; the mean over the optimiser steps of the update."""


def update_line(
    step: int,
    evaluation: Evaluation,
    problem_ids: list[str],
    logs: Sequence[Mapping[str, Any]],
    config: Config,
    plan: GrpoPlan,
) -> dict[str, Any]:
    """The keys of an ES line (reward spread over the places in the group) and what GRPO adds.

    kl is None without a KL term. Positions are counted without padding; the shared prompt prefix is counted in full.
    """
    record = StepRecord(step, 0.0, 0.0, member_rewards(evaluation, problem_ids), None)
    line = update_metrics(record, evaluation)
    del line["sigma"], line["alpha"]
    spreads = _group_spreads(evaluation)
    line["zero_spread_groups"] = sum(spread == 0.0 for spread in spreads) / len(spreads)
    line["group_std"] = statistics.fmean(spreads)
    line["updated"] = line["zero_spread_groups"] < 1.0
    for name, key in LOGGED.items():
        values = [float(entry[key]) for entry in logs if entry.get(key) is not None]
        line[name] = statistics.fmean(values) if values else None
    positions = line["tokens"] + line["prompt_tokens"]
    line["forward_positions"] = positions * forward_passes(config, plan)
    line["backward_positions"] = positions * plan.iterations
    line["optimiser_steps"] = len(logs)
    line["problems"] = list(problem_ids)
    return line


def forward_passes(config: Config, plan: GrpoPlan) -> int:
    """Passes over all positions: generation, the loss, the old policy where clipping can act, the reference."""
    return 1 + plan.iterations + (plan.steps > 1) + (config.grpo.beta > 0)


def _group_spreads(evaluation: Evaluation) -> list[float]:
    """Population standard deviation of the rewards of each problem's responses; skipped ones are left out."""
    spreads = []
    for scores in zip(*(member.scores for member in evaluation.members), strict=True):
        rewards = [score.reward for score in scores if score.error != SKIPPED]
        spreads.append(statistics.pstdev(rewards) if rewards else 0.0)
    return spreads


class IdleGroups:
    """Ends a run in which no group ever had two different rewards: there is no gradient to follow."""

    def __init__(self, config: Config) -> None:
        self.limit = config.train.stop_when_idle
        self.idle = 0
        self.moved = False

    def check(self, line: Mapping[str, Any], evaluation: Evaluation, reporter: Reporter) -> None:
        """UserError when the first `train.stop_when_idle` updates of this process all had equal rewards."""
        self.moved = self.moved or line["updated"]
        if self.moved or self.limit == 0:
            return
        self.idle += 1
        reporter.warn(
            f"update {line['step']}: equal rewards in every group (mean {line['reward_mean']:.3f}), so there is no "
            f"gradient ({line['format_rate']:.0%} of the answers are in the required form)"
        )
        if self.idle >= self.limit:
            answer = " ".join(evaluation.members[0].responses[0].text.split())[:120]
            raise UserError(
                f"stopped: {self.idle} updates in a row had equal rewards within every group, and waiting will not "
                "change that. Try worked examples (task.shots=2), an easier task, a larger grpo.group_size, or another "
                f"model; train.stop_when_idle=0 waits for ever. An answer reads: {answer!r}"
            )
