"""The responses of a GRPO update: our engine, our seeded sampler and our grader, in the shape that TRL asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from broadreach.config import Config
from broadreach.engines.base import Engine
from broadreach.fleet.base import Evaluation, MemberResult
from broadreach.fleet.local import LocalFleet
from broadreach.models.weights import end_tokens
from broadreach.tasks.grading import Grader
from broadreach.tasks.reward_function import SKIPPED
from broadreach.training.grpo_plan import GrpoPlan
from broadreach.training.metrics import member_rewards
from broadreach.training.reporter import Reporter
from broadreach.training.setup import Prepared
from broadreach.types import CENTRE_MEMBER, Centre, Perturbation, Problem, Request, Response, Sampling


class Rollouts:
    """Answers and grades the batch of an update; the last one stays here for the metrics.

    The rows of a batch are its problems in order, each `group` times, as TRL expects them.
    """

    def __init__(
        self,
        config: Config,
        prepared: Prepared,
        plan: GrpoPlan,
        engine: Engine | None,
        grader: Grader,
        weights: Callable[[], Centre],
        reporter: Reporter,
    ) -> None:
        self.config = config
        self.prepared = prepared
        self.plan = plan
        self.engine = engine
        self.grader = grader
        self.weights = weights
        self.reporter = reporter
        self.evaluation: Evaluation | None = None
        """One "member" for each place in the group: its responses to the batch, in problem order."""
        self.problem_ids: list[str] = []
        self.began = 0.0
        """When the present update began."""

    def generate(self, prompts: Sequence[Any], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: token ids of prompts and completions under the policy's present weights."""
        assert self.engine is not None
        problems, requests = self._rows(trainer.state.global_step // self.plan.steps + 1)
        assert len(prompts) == len(problems)
        began = time.perf_counter()
        self.engine.load(self.weights())
        loading = time.perf_counter() - began
        fleet = LocalFleet(self.config, self.engine, self.grader, {}, None)
        found = fleet.evaluate(
            [CENTRE_MEMBER],
            Perturbation(self.config.seed, 0, self.config.es.sigma),
            problems,
            requests,
            self._sampling(trainer.state.global_step // self.plan.steps + 1),
            self.reporter.responses,
        )
        seconds = dict(found.seconds)
        seconds["generation"] += loading + seconds.pop("noise", 0.0)
        self._keep(problems, found.members[0], seconds)
        return {
            "prompt_ids": [list(request.prompt) for request in requests],
            "completion_ids": [list(response.tokens) for response in found.members[0].responses],
            "logprobs": None,
        }

    def rewards(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """TRL's reward function; None for a response that has no reward (it gets advantage 0).

        UserError names the problem of a non-finite reward.
        """
        if self.engine is None:
            self._grade(columns["trainer_state"].global_step // self.plan.steps + 1, completion_ids)
        evaluation = self.evaluation
        assert evaluation is not None
        member_rewards(evaluation, self.problem_ids)
        group = len(evaluation.members)
        scores = [evaluation.members[i % group].scores[i // group] for i in range(len(prompts))]
        return [None if score.error == SKIPPED else score.reward for score in scores]

    def _grade(self, step: int, completion_ids: Sequence[Sequence[int]]) -> None:
        """Grade what TRL itself generated."""
        problems, requests = self._rows(step)
        ends = end_tokens(self.prepared.model_dir)
        texts = self.prepared.tokenizer.batch_decode(completion_ids, skip_special_tokens=True)
        responses = tuple(
            Response(text, tuple(ids), "stop" if ids and ids[-1] in ends else "length", len(request.prompt))
            for text, ids, request in zip(texts, completion_ids, requests, strict=True)
        )
        generated = time.perf_counter()
        scores = tuple(self.grader.grade(problems, responses))
        seconds = {"generation": generated - self.began, "verification": time.perf_counter() - generated}
        self._keep(problems, MemberResult(scores, responses), seconds)

    def _rows(self, step: int) -> tuple[list[Problem], list[Request]]:
        positions = self.prepared.batches.at(step)
        group = range(self.plan.group)
        problems = [self.prepared.problems[i] for i in positions for _ in group]
        requests = [replace(self.prepared.requests[i], sample=sample) for i in positions for sample in group]
        return problems, requests

    def _sampling(self, step: int) -> Sampling:
        return Sampling(
            temperature=self.config.grpo.temperature,
            max_new_tokens=self.config.sampling.max_new_tokens,
            seed=self.config.seed,
            step=step,
        )

    def _keep(self, problems: Sequence[Problem], result: MemberResult, seconds: Mapping[str, float]) -> None:
        group = self.plan.group
        members = tuple(MemberResult(result.scores[j::group], result.responses[j::group]) for j in range(group))
        self.evaluation = Evaluation(members, dict(seconds))
        self.problem_ids = [problem.id for problem in problems[::group]]
