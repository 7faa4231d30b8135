"""Teacher-forced scores against one plain forward pass of the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import engine_models
import numpy as np
import pytest
import torch

from broadreach.engines import scoring
from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.models.weights import load_centre, load_model
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, UserError

MOVED = Perturbation(seed=3, step=1, sigma=0.02)
Tiny = Callable[..., Path]

PROMPTS = [request.prompt for request in engine_models.requests(9)]
RESPONSES = [tuple(5 + (13 * i + 3 * j) % 80 for j in range(1 + 4 * i % 11)) for i in range(8)] + [()]


@pytest.mark.parametrize("chunk_logits", [96, 2**22])
@pytest.mark.parametrize("architecture", ["llama", "gemma3", "gpt2"])
def test_scores_are_those_of_a_plain_forward_pass(
    tiny: Tiny, architecture: str, chunk_logits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "LOGITS", chunk_logits)
    monkeypatch.setattr(scoring, "ROWS", 4)
    served = HfEngine(tiny(architecture))
    served.load(load_centre(tiny(architecture)))
    model = load_model(tiny(architecture), "float32")
    scores = served.score_tokens(PROMPTS, RESPONSES, CENTRE_MEMBER, MOVED)
    for prompt, response, score in zip(PROMPTS, RESPONSES, scores, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([[*prompt, *response]])).logits[0].double()
        logs = torch.log_softmax(logits, dim=-1)[len(prompt) - 1 : len(prompt) + len(response) - 1]
        expected = logs.gather(1, torch.tensor(response, dtype=torch.long)[:, None])[:, 0]
        np.testing.assert_allclose(score.log_probabilities, expected.numpy(), atol=2e-5)
        np.testing.assert_allclose(score.entropies, -(logs.exp() * logs).sum(1).numpy(), atol=2e-5)
        assert score.log_probabilities.dtype == score.entropies.dtype == np.float32


def test_both_engines_give_the_same_scores_of_a_member(tiny: Tiny) -> None:
    member = Member(2, 1, -1)
    found = []
    for kind in (HfEngine, PopulationEngine):
        served = kind(tiny("qwen2"))
        served.load(load_centre(tiny("qwen2")))
        found.append(served.score_tokens(PROMPTS, RESPONSES, member, MOVED))
    for one, many in zip(*found, strict=True):
        np.testing.assert_allclose(one.log_probabilities, many.log_probabilities, atol=2e-5)
        np.testing.assert_allclose(one.entropies, many.entropies, atol=2e-5)


def test_entropy_of_certainty_is_zero_and_not_nan() -> None:
    logits = torch.tensor([[[200.0, -200.0, -float("inf")]]])
    scores = scoring._score(logits, torch.tensor([[0]]))
    assert scores.tolist() == [[[0.0, 0.0]]]


def test_no_pairs_and_pairs_that_do_not_match(tiny: Tiny) -> None:
    served = HfEngine(tiny("llama"))
    served.load(load_centre(tiny("llama")))
    assert served.score_tokens([], [], CENTRE_MEMBER, MOVED) == []
    with pytest.raises(UserError, match="2 prompts and 1 responses"):
        served.score_tokens([(5,), (6,)], [(7,)], CENTRE_MEMBER, MOVED)
    with pytest.raises(UserError, match="pair 0 has 100 prompt and 60 response"):
        served.score_tokens([(5,) * 100], [(7,) * 60], CENTRE_MEMBER, MOVED)
