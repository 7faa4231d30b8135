"""JS_pol, entropies and Lemma 1 of one step, from the responses that its rollouts kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadreach.analysis.diversity_rollout import Rollout
from broadreach.analysis.diversity_values import Value, function_interval, mean_values
from broadreach.analysis.fisher import fisher_trace
from broadreach.analysis.policy_divergence import Forced, policy_divergence
from broadreach.analysis.policy_divergence_model import MemberModel
from broadreach.analysis.theory import lemma_1
from broadreach.types import Member, Perturbation

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """How much is scored."""

    responses: int
    """Responses a prompt for JS_pol, drawn from the members in turn."""
    gradients: int
    """Responses of the centre a prompt for tr I(theta); 0: Lemma 1 is left out."""
    temperature: float


def forced_responses(rollouts: Sequence[Rollout], prompts: Sequence[Sequence[int]], count: int) -> list[Forced]:
    """`count` responses to each prompt, members in turn from prompt to prompt, so that all get equal shares."""
    members, samples = len(rollouts), len(rollouts[0].tokens[0])
    found = []
    for at, prompt in enumerate(prompts):
        for k in range(count):
            turn, member = divmod(at * count + k, members)
            found.append(Forced(tuple(prompt), rollouts[member].tokens[at][turn % samples]))
    return found


def measure_policies(
    model: MemberModel,
    members: Sequence[Member],
    perturbation: Perturbation,
    rollouts: Mapping[str, Rollout],
    names: Sequence[str],
    centre: Rollout,
    prompts: Sequence[Sequence[int]],
    settings: PolicySettings,
    advance: Callable[[int], None] | None = None,
) -> list[Value]:
    """JS_pol, entropy of the mixture and of single policies, and Lemma 1's right-hand side, with intervals."""
    forced = forced_responses([rollouts[name] for name in names], prompts, settings.responses)
    found = policy_divergence(model, members, perturbation, forced, temperature=settings.temperature, advance=advance)

    def of_prompt(values: Floats) -> Floats:
        return values.reshape(len(prompts), settings.responses).mean(axis=1)

    tokens = of_prompt(found.tokens.astype(np.float64))
    js, mixture, single = map(of_prompt, (found.js, found.mixture_entropy, found.member_entropy))
    unit = "nats a response"
    columns = {
        "js_pol": (js, "9", f"{unit}, exact over the vocabulary; at most log N = {np.log(len(members)):.3f}"),
        "js_pol_sequence": (of_prompt(found.sequence_js), "9", f"{unit}, from the responses' probabilities alone"),
        "population_entropy": (mixture, "", f"{unit}: of the mixture of all members"),
        "member_entropy": (single, "", f"{unit}: mean over members"),
        "tokens_per_response": (tokens, "", ""),
    }
    values = mean_values(columns)
    values.append(_per_token("population_entropy_per_token", mixture, tokens))
    values.append(_per_token("member_entropy_per_token", single, tokens))
    values += _centre_entropy(model, centre, prompts, settings)
    if settings.gradients:
        values += _lemma_1(model, centre, prompts, settings, perturbation.sigma, len(members), js, advance)
    return values


def _centre_entropy(
    model: MemberModel, centre: Rollout, prompts: Sequence[Sequence[int]], settings: PolicySettings
) -> list[Value]:
    """Entropy of the unperturbed policy on its own responses."""
    count = min(settings.responses, len(centre.tokens[0]))
    own = [Forced(tuple(p), row[k]) for p, row in zip(prompts, centre.tokens, strict=True) for k in range(count)]
    member = Member(index=0, direction=0, sign=0)
    found = policy_divergence(model, [member], Perturbation(0, 0, 0.0), own, temperature=settings.temperature)
    shape = (len(prompts), count)
    entropy = found.mixture_entropy.reshape(shape).mean(axis=1)
    tokens = found.tokens.reshape(shape).mean(axis=1)
    values = mean_values({"centre_entropy": (entropy, "", "nats a response: pi_theta on its own responses")})
    return [*values, _per_token("centre_entropy_per_token", entropy, tokens)]


def _per_token(name: str, entropy: Floats, tokens: Floats) -> Value:
    return Value(name, function_interval([entropy, tokens], lambda c: c[:, 0] / c[:, 1]), "", "nats a token")


def _lemma_1(
    model: MemberModel,
    centre: Rollout,
    prompts: Sequence[Sequence[int]],
    settings: PolicySettings,
    sigma: float,
    members: int,
    js: Floats,
    advance: Callable[[int], None] | None,
) -> list[Value]:
    drawn = [row[: settings.gradients] for row in centre.tokens]
    trace = fisher_trace(model, prompts, drawn, temperature=settings.temperature, advance=advance)
    right = lemma_1(sigma, members, trace.of_prompt)
    note = f"{trace.samples} gradients of sampled responses, standard error {trace.error:.3g} with the prompts fixed"
    ratio = function_interval([js, right], lambda c: c[:, 0] / c[:, 1])
    return [
        *mean_values(
            {
                "fisher_trace": (trace.of_prompt, "9", f"tr I(theta) a response; {note}"),
                "lemma_1": (right, "9", "sigma^2/2 (1 - 1/N) tr I(theta)"),
            }
        ),
        Value("js_pol_over_lemma_1", ratio, "9", "1 where the second order suffices"),
    ]
