"""Is there anything to learn from? The base on the first batch, and the end of runs whose rewards never differ."""

from __future__ import annotations

from broadreach.config import Config
from broadreach.fleet.base import Evaluation
from broadreach.fleet.local import LocalFleet
from broadreach.tasks.reward_function import SKIPPED
from broadreach.training.metrics import share
from broadreach.training.reporter import Reporter
from broadreach.training.setup import Prepared
from broadreach.types import CENTRE_MEMBER, Perturbation, Sampling, StepRecord, UserError


def describe_base(fleet: LocalFleet, prepared: Prepared, config: Config, reporter: Reporter) -> None:
    """Say how the unperturbed model does on the first batch, and what a perturbation rounds away."""
    positions = prepared.batches.at(1)
    evaluation = fleet.evaluate(
        [CENTRE_MEMBER],
        Perturbation(config.seed, 0, config.es.sigma),
        [prepared.problems[i] for i in positions],
        [prepared.requests[i] for i in positions],
        Sampling(config.sampling.temperature, config.sampling.max_new_tokens, config.seed, 0),
    )
    scores = evaluation.members[0].scores
    reward = sum(score.reward for score in scores) / len(scores)
    reporter.note(
        f"the base on the first {len(scores)} problems: reward {reward:.3f}, "
        f"{share(s.correct for s in scores):.0%} right, {share(s.format_ok for s in scores):.0%} in the required form"
    )
    if all(score.error == SKIPPED for score in scores):
        reporter.warn("the reward function returned None for every response of the base: there is nothing to score")
    elif not any(score.format_ok for score in scores):
        reporter.warn(
            "the base never answers in the required form, so every member may score 0 and no update happen; "
            f"show it worked examples (--set task.shots=2){_example(evaluation)}"
        )


class IdleGuard:
    """Ends a run in which no update has happened: equal rewards teach nothing, however long one waits."""

    def __init__(self, config: Config) -> None:
        self.limit = config.train.stop_when_idle
        self.idle = 0
        self.moved = False

    def check(self, record: StepRecord, evaluation: Evaluation, reporter: Reporter) -> None:
        """UserError when the first `train.stop_when_idle` updates of this process all had equal rewards."""
        if record.update is not None:
            self.moved = True
        if self.moved or self.limit == 0:
            return
        self.idle += 1
        scores = [score for member in evaluation.members for score in member.scores]
        if all(score.error == SKIPPED for score in scores):
            reporter.warn(
                f"update {record.step}: the reward function returned None for all {len(scores)} responses, so there "
                "was nothing to learn from and nothing moved"
            )
        else:
            right_form = share(score.format_ok for score in scores)
            reporter.warn(
                f"update {record.step}: all {len(record.rewards)} members scored {record.rewards[0]:.3f}, so nothing "
                f"moved ({right_form:.0%} of the answers are in the required form)"
            )
        if self.idle >= self.limit:
            raise UserError(
                f"stopped: {self.idle} updates in a row had equal rewards for all members, and waiting will not "
                "change that. Try worked examples (task.shots=2), an easier task, a larger es.sigma or train.batch, or "
                f"another model; train.stop_when_idle=0 waits for ever{_example(evaluation)}"
            )


def _example(evaluation: Evaluation) -> str:
    text = " ".join(evaluation.members[0].responses[0].text.split())
    return f". An answer reads: {text[:120]!r}"
