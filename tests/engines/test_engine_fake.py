"""The engine without a model: deterministic, exact, and something ES can improve."""

from __future__ import annotations

import time

import numpy as np
import pytest

from broadreach.engines.fake import SHAPES, FakeEngine, zero_centre
from broadreach.noise.members import population_members
from broadreach.noise.update import apply_update, digest, quantise
from broadreach.types import CENTRE_MEMBER, Centre, Member, Perturbation, Request, Sampling, Update

REQUESTS = [Request(f"p{i}", (1, 2, 3), sample=s) for i in range(40) for s in range(2)]
SAMPLING = Sampling(0.0, 8)


def fake(centre: Centre, **options: float) -> FakeEngine:
    served = FakeEngine(SHAPES, **options)  # type: ignore[arg-type]
    served.load(centre)
    return served


def boxed(
    served: FakeEngine, members: list[Member], perturbation: Perturbation
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A reward: the share of responses with a boxed answer, per member."""
    rows = served.generate(REQUESTS, members, perturbation, SAMPLING)
    return np.array([np.mean(["boxed" in response.text for response in row]) for row in rows])


def test_responses_are_a_function_of_weights_and_request() -> None:
    members = population_members(6, "one_point")
    perturbation = Perturbation(1, 1, 0.003)
    first = fake(zero_centre()).generate(REQUESTS, members, perturbation, Sampling(1.0, 8, seed=3))
    again = fake(zero_centre()).generate(REQUESTS[::-1], members[::-1], perturbation, Sampling(1.0, 8, seed=3))
    assert [row[::-1] for row in again[::-1]] == first
    assert len({tuple(row) for row in first}) == 6


def test_it_serves_the_centre_again_and_any_named_tensors() -> None:
    centre = {"b": np.ones((3, 2), np.float32), "a": np.zeros(5, np.float32)}
    served = FakeEngine()
    served.load(centre)
    with pytest.raises(RuntimeError):
        served.generate(REQUESTS, [Member(0, 0, 1)], Perturbation(0, 0, 0.1), SAMPLING, deliver=_fail)
    assert served.digest() == digest(centre)
    assert served.parameter_names == ("a", "b")


def _fail(position: int, responses: object) -> None:
    raise RuntimeError("stop here")


def test_evolution_strategies_improve_its_reward() -> None:
    centre = zero_centre()
    before = boxed(fake(centre), [CENTRE_MEMBER], Perturbation(0, 0, 0.0))[0]
    for step in range(1, 16):
        served = fake(centre)
        rewards = boxed(served, population_members(16, "one_point"), Perturbation(5, step, 0.001))
        weights = 0.0005 * (rewards - rewards.mean()) / (rewards.std() + 1e-9)
        found = quantise(list(weights / 16))
        assert found is not None
        apply_update(centre, Update(tuple(range(16)), *found), seed=5, step=step)
    assert boxed(fake(centre), [CENTRE_MEMBER], Perturbation(0, 0, 0.0))[0] > before + 0.2


def test_scores_sum_to_one_and_belong_to_the_tokens() -> None:
    served = fake(zero_centre())
    every = tuple(range(100))
    score = served.score_tokens([(1,)], [every], CENTRE_MEMBER, Perturbation(0, 0, 0.0))[0]
    assert np.exp(score.log_probabilities.astype(np.float64)).sum() == pytest.approx(1.0, abs=1e-5)
    assert score.entropies.shape == (100,)


def test_delay_is_a_wait_per_member() -> None:
    served = fake(zero_centre(), delay=0.05)
    began = time.perf_counter()
    boxed(served, population_members(3, "one_point"), Perturbation(0, 0, 0.01))
    assert time.perf_counter() - began >= 0.15
