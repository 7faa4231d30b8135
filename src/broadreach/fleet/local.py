"""One machine, one engine: members run here, grading runs beside generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from broadreach.config import Config
from broadreach.engines.base import Engine
from broadreach.fleet.base import Evaluation, MemberResult
from broadreach.noise.advance import advance
from broadreach.noise.update import digest
from broadreach.tasks.grading import Grader
from broadreach.types import Centre, Member, Perturbation, Problem, Request, Response, Sampling, Update


class LocalFleet:
    """Serves `centre` through one engine; `centre` is moved in place by `apply`."""

    def __init__(self, config: Config, engine: Engine, grader: Grader, centre: Centre, base: Centre | None) -> None:
        self.config = config
        self.engine = engine
        self.grader = grader
        self.centre = centre
        self.base = base

    def evaluate(
        self,
        members: Sequence[Member],
        perturbation: Perturbation,
        problems: Sequence[Problem],
        requests: Sequence[Request],
        sampling: Sampling,
        progress: Callable[[int], None] | None = None,
    ) -> Evaluation:
        """Answer and grade every request under every member; a member is graded while the next ones generate."""
        handles: list[list[Any]] = [[] for _ in members]
        grading = 0.0

        def deliver(position: int, responses: list[Response]) -> None:
            nonlocal grading
            began = time.perf_counter()
            pairs = zip(problems, responses, strict=True)
            handles[position] = [self.grader.submit(problem, response) for problem, response in pairs]
            grading += time.perf_counter() - began

        began, noise_before = time.perf_counter(), self.engine.noise_seconds
        answers = self.engine.generate(requests, members, perturbation, sampling, progress, deliver)
        generated = time.perf_counter()
        noise = self.engine.noise_seconds - noise_before
        results = tuple(
            MemberResult(tuple(self.grader.results(waiting)), tuple(responses))
            for waiting, responses in zip(handles, answers, strict=True)
        )
        seconds = {
            "generation": generated - began - noise - grading,
            "noise": noise,
            "verification": grading + time.perf_counter() - generated,
        }
        return Evaluation(results, seconds)

    def apply(self, update: Update | None, perturbation: Perturbation) -> None:
        """Move the centre by one step and serve it."""
        es = self.config.es
        if update is None and es.precision == "exact":
            return
        advance(
            self.centre,
            update,
            perturbation,
            base=self.base,
            precision=es.precision,
            model_dtype=self.config.model.dtype,
            population=es.population,
            estimator=es.estimator,
        )
        self.engine.load(self.centre)

    def digests(self) -> list[str]:
        """Digest of the one float32 centre."""
        return [digest(self.centre)]
