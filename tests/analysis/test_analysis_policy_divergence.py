"""JS_pol and the Fisher trace on the bundled model, against enumeration and an independent gradient."""

import numpy as np
import pytest
import torch

from broadreach.analysis.fisher import fisher_trace
from broadreach.analysis.policy_divergence import Forced, policy_divergence
from broadreach.analysis.policy_divergence_model import MemberModel
from broadreach.analysis.theory import lemma_1
from broadreach.config import TaskSettings
from broadreach.engines.hf import HfEngine
from broadreach.models.locate import locate
from broadreach.models.weights import load_centre, load_model, load_tokenizer
from broadreach.noise.members import population_members
from broadreach.tasks.registry import get_task
from broadreach.tasks.render import render
from broadreach.types import CENTRE_MEMBER, Perturbation, UserError

DIRECTORY = locate("nano")


@pytest.fixture(scope="module")
def centre():
    return load_centre(DIRECTORY)


@pytest.fixture(scope="module")
def model(centre):
    return MemberModel(DIRECTORY, centre)


@pytest.fixture(scope="module")
def prompts():
    task, tokenizer = get_task(TaskSettings(name="nano-chain")), load_tokenizer(DIRECTORY)
    return [render(tokenizer, task, problem) for problem in task.problems("test")[:3]]


def distributions(model, members, perturbation, prompt, responses):
    """Next-token distributions after every response's first token: float64 [members, 1 + responses, vocabulary]."""
    found = []
    with torch.inference_mode():
        for member in members:
            model.serve(member, perturbation)
            logs = model.log_probabilities([prompt] * len(responses), responses)
            found.append(torch.stack([logs[0][0], *(part[1] for part in logs)]).double().exp())
    return torch.stack(found).numpy()


def test_js_of_two_token_responses_is_the_enumerated_one(model, prompts):
    members, perturbation = population_members(3, "one_point"), Perturbation(5, 1, 0.05)
    vocabulary = 519
    responses = [(token, 0) for token in range(vocabulary)]
    p = distributions(model, members, perturbation, prompts[0], responses)
    joint = p[:, 0, :, None] * p[:, 1:]  # pi_i(y1, y2)
    mixture = joint.mean(axis=0)
    expected = (joint * np.log(joint / mixture)).sum(axis=(1, 2)).mean()
    entropy = -(mixture * np.log(mixture)).sum()
    forced = [Forced(prompts[0], response) for response in responses]
    found = policy_divergence(model, members, perturbation, forced, values=100 * vocabulary)
    weights = p[:, 0].mean(axis=0)  # the mixture's chance of each first token
    assert expected > 0.01
    assert weights @ found.js == pytest.approx(expected, rel=1e-4)
    assert weights @ found.mixture_entropy == pytest.approx(entropy, rel=1e-4)
    assert (weights @ found.mixture_entropy) - (weights @ found.member_entropy) == pytest.approx(expected, rel=1e-3)


def test_equal_members_do_not_diverge_and_n_disjoint_ones_reach_log_n(model, prompts):
    forced = [Forced(prompts[0], (7, 8, 9))]
    same = policy_divergence(model, [CENTRE_MEMBER] * 4, Perturbation(0, 1, 0.1), forced)
    assert same.js == pytest.approx([0.0], abs=1e-6) and same.sequence_js == pytest.approx([0.0], abs=1e-6)
    members = population_members(4, "one_point")
    wild = policy_divergence(model, members, Perturbation(0, 1, 3.0), [Forced(prompts[0], (7,))])
    assert 1.2 < wild.js[0] <= np.log(4) + 1e-6


def test_chunks_of_responses_change_nothing(model, prompts):
    members, perturbation = population_members(3, "one_point"), Perturbation(1, 1, 0.02)
    forced = [Forced(prompt, tuple(range(4, 4 + length))) for prompt, length in zip(prompts, (3, 9, 5), strict=True)]
    together = policy_divergence(model, members, perturbation, forced)
    apart = policy_divergence(model, members, perturbation, forced, values=1)
    np.testing.assert_allclose(apart.js, together.js, rtol=1e-4)
    np.testing.assert_allclose(apart.sequence_js, together.sequence_js, rtol=1e-4)


def test_log_probabilities_are_those_of_the_engine(model, centre, prompts):
    engine = HfEngine(DIRECTORY)
    engine.load(centre)
    member, perturbation = population_members(2, "one_point")[1], Perturbation(3, 4, 0.01)
    responses = [(10, 11, 12), (5,), (9, 9)]
    scores = engine.score_tokens(prompts, responses, member, perturbation)
    with torch.inference_mode():
        model.serve(member, perturbation)
        full = model.log_probabilities(prompts, responses)
    for part, score, tokens in zip(full, scores, responses, strict=True):
        chosen = part.gather(1, torch.tensor(tokens).unsqueeze(1)).squeeze(1)
        np.testing.assert_allclose(chosen.numpy(), score.log_probabilities, atol=1e-4)
        np.testing.assert_allclose(-(part.exp() * part).sum(1).numpy(), score.entropies, atol=1e-4)


def test_squared_gradient_is_that_of_the_models_own_loss(model, prompts):
    response = (10, 11, 12, 1)
    plain = load_model(DIRECTORY, "float32").requires_grad_(True)
    ids = torch.tensor([[*prompts[0], *response]])
    labels = ids.clone()
    labels[0, : len(prompts[0])] = -100
    (plain(ids, labels=labels).loss * len(response)).backward()
    expected = sum(float(p.grad.double().square().sum()) for p in plain.parameters())
    model.serve()
    assert model.squared_gradient(prompts[0], response) == pytest.approx(expected, rel=1e-4)


def test_lemma_1_on_the_bundled_model(model, prompts):
    members, perturbation = population_members(32, "one_point"), Perturbation(0, 1, 5e-4)
    with torch.inference_mode():
        model.serve()
        p = model.log_probabilities([prompts[0]], [(0,)])[0][0].double().exp().numpy()
    likely = [int(token) for token in np.argsort(-p)[:12]]
    squares = [model.squared_gradient(prompts[0], (token,)) for token in likely]
    trace = float(p[likely] @ squares)
    js = policy_divergence(model, members, perturbation, [Forced(prompts[0], (likely[0],))]).js[0]
    assert js == pytest.approx(float(lemma_1(5e-4, 32, trace)), rel=0.35)  # 32 random directions


def test_trace_comes_with_its_standard_error(model, prompts):
    responses = [[(5, 1), (6, 1)], [(7, 1), (8, 1)]]
    found = fisher_trace(model, prompts[:2], responses)
    squares = [[model.squared_gradient(p, r) for r in row] for p, row in zip(prompts[:2], responses, strict=True)]
    np.testing.assert_allclose(found.of_prompt, np.mean(squares, axis=1))
    assert found.error == pytest.approx(np.sqrt((np.var(squares, axis=1, ddof=1) / 2).sum()) / 2)
    assert found.samples == 4


def test_empty_responses_are_refused(model, prompts):
    with pytest.raises(UserError, match="no token"):
        policy_divergence(model, [CENTRE_MEMBER], Perturbation(0, 1, 0.1), [Forced(prompts[0], ())])
