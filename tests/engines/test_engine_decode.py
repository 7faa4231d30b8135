"""Our decoding loop against Transformers' generate(), and what must not change an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import engine_models
import pytest
import torch

from broadreach.engines.hf import HfEngine
from broadreach.engines.runner import common_prefix
from broadreach.engines.shared_prefix import SharedPrefixRunner
from broadreach.engines.stock import StockRunner
from broadreach.models.weights import load_centre, load_model
from broadreach.types import CENTRE_MEMBER, Member, Perturbation, Request, Sampling, UserError

NOTHING = Perturbation(seed=0, step=0, sigma=0.0)
Tiny = Callable[..., Path]


def engine(directory: Path, **options: int) -> HfEngine:
    built = HfEngine(directory, **options)  # type: ignore[arg-type]
    built.load(load_centre(directory))
    return built


def answer(served: HfEngine, requests: Sequence[Request], sampling: Sampling) -> list[tuple[int, ...]]:
    return [response.tokens for response in served.generate(requests, [CENTRE_MEMBER], NOTHING, sampling)[0]]


def oracle(directory: Path, requests: Sequence[Request], new_tokens: int) -> list[tuple[int, ...]]:
    """What generate() says, one left-padded batch."""
    model = load_model(directory, "float32")
    longest = max(len(request.prompt) for request in requests)
    pads = [longest - len(request.prompt) for request in requests]
    ids = torch.tensor([[0] * pad + list(request.prompt) for pad, request in zip(pads, requests, strict=True)])
    mask = torch.tensor([[0] * pad + [1] * (longest - pad) for pad in pads])
    out = model.generate(ids, attention_mask=mask, max_new_tokens=new_tokens, do_sample=False)  # type: ignore[operator]
    rows = out[:, longest:].tolist()
    ends = [next((i + 1 for i, token in enumerate(row) if token in engine_models.ENDS), len(row)) for row in rows]
    return [tuple(row[:end]) for row, end in zip(rows, ends, strict=True)]


@pytest.mark.parametrize("architecture", sorted(engine_models.ARCHITECTURES))
def test_greedy_equals_generate_for_ragged_prompts(tiny: Tiny, architecture: str) -> None:
    requests = engine_models.requests(24)
    expected = oracle(tiny(architecture), requests, 20)
    assert answer(engine(tiny(architecture)), requests, Sampling(0.0, 20)) == expected
    if architecture in ("llama", "qwen2", "qwen3"):
        assert len({len(tokens) for tokens in expected}) > 3, "the test needs rows that end at different positions"


def test_the_fast_runner_serves_plain_attention_and_the_stock_one_sliding_windows(tiny: Tiny) -> None:
    assert isinstance(engine(tiny("llama"))._runner, SharedPrefixRunner)
    assert isinstance(engine(tiny("gemma3"))._runner, StockRunner)


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_prompts_without_a_common_prefix_and_of_one_token(tiny: Tiny, architecture: str) -> None:
    requests = [Request("a", (5,)), Request("b", (6,)), Request("c", (9, 8, 7, 6, 5))]
    assert answer(engine(tiny(architecture)), requests, Sampling(0.0, 8)) == oracle(tiny(architecture), requests, 8)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3"])
def test_an_answer_does_not_depend_on_its_batch(tiny: Tiny, architecture: str, temperature: float) -> None:
    requests = engine_models.requests(10, samples=2)
    sampling = Sampling(temperature, 12, seed=4, step=2)
    served = engine(tiny(architecture))
    together = answer(served, requests, sampling)
    assert [answer(served, [request], sampling)[0] for request in requests] == together
    assert answer(served, requests[::-1], sampling) == together[::-1]
    assert answer(engine(tiny(architecture), rows=3), requests, sampling) == together


def test_samples_of_one_prompt_differ_and_repeat(tiny: Tiny) -> None:
    served = engine(tiny("llama"))
    requests = [Request("a", (5, 6, 7), sample=i) for i in range(16)]
    first = answer(served, requests, Sampling(1.0, 10, seed=1))
    assert len(set(first)) == 16
    assert answer(served, requests, Sampling(1.0, 10, seed=1)) == first
    assert answer(served, requests, Sampling(1.0, 10, seed=2)) != first
    assert len(set(answer(served, requests, Sampling(0.0, 10)))) == 1


def test_common_seeds_give_all_members_the_same_noise(tiny: Tiny) -> None:
    served = engine(tiny("llama"))
    members = [Member(index, 0, 0) for index in range(4)]  # four times the centre
    requests = engine_models.requests(3)

    def distinct(common: bool) -> int:
        rows = served.generate(requests, members, NOTHING, Sampling(1.0, 10, common=common))
        return len({tuple(response.tokens for response in row) for row in rows})

    assert (distinct(True), distinct(False)) == (1, 4)


def test_finish_reason_text_and_prompt_length(tiny: Tiny) -> None:
    requests = engine_models.requests(24)
    responses = engine(tiny("llama")).generate(requests, [CENTRE_MEMBER], NOTHING, Sampling(0.0, 20))[0]
    for request, response in zip(requests, responses, strict=True):
        stopped = response.tokens[-1] in engine_models.ENDS
        assert response.finish_reason == ("stop" if stopped else "length")
        assert stopped or len(response.tokens) == 20
        assert not set(response.tokens[:-1]) & set(engine_models.ENDS)
        assert response.prompt_tokens == len(request.prompt)
        assert response.text.split() == [f"w{token}" for token in response.tokens if token > 3]


def test_progress_counts_every_response_once_and_members_are_delivered_in_order(tiny: Tiny) -> None:
    finished: list[int] = []
    delivered: list[int] = []
    members = [Member(i, i, 1) for i in range(3)]
    requests = engine_models.requests(10)
    rows = engine(tiny("llama")).generate(
        requests,
        members,
        Perturbation(0, 1, 0.01),
        Sampling(0.0, 10),
        finished.append,
        lambda position, responses: delivered.append(position) if len(responses) == 10 else None,
    )
    assert (sum(finished), delivered, len(rows)) == (30, [0, 1, 2], 3)


def test_no_requests_or_no_members(tiny: Tiny) -> None:
    served = engine(tiny("llama"))
    assert served.generate([], [CENTRE_MEMBER], NOTHING, Sampling(0.0, 4)) == [[]]
    assert served.generate(engine_models.requests(2), [], NOTHING, Sampling(0.0, 4)) == []


def test_a_prompt_that_does_not_fit_names_its_problem(tiny: Tiny) -> None:
    requests = [Request("fits", (5,) * 100), Request("too-long", (5,) * 120)]
    with pytest.raises(UserError, match=r"problem too-long: prompt of 120 tokens plus max_new_tokens 20 .* 128"):
        engine(tiny("llama")).generate(requests, [CENTRE_MEMBER], NOTHING, Sampling(0.0, 20))


def test_an_empty_prompt_names_its_problem(tiny: Tiny) -> None:
    with pytest.raises(UserError, match="problem hollow: the prompt is empty"):
        engine(tiny("llama")).generate([Request("hollow", ())], [CENTRE_MEMBER], NOTHING, Sampling(0.0, 4))


def test_broken_weights_are_an_error_not_an_answer(tiny: Tiny) -> None:
    served = engine(tiny("llama"))
    centre = load_centre(tiny("llama"))
    centre["model.norm.weight"][:] = float("nan")
    served.load(centre)
    with pytest.raises(UserError, match="not finite"):
        served.generate(engine_models.requests(2), [CENTRE_MEMBER], NOTHING, Sampling(0.0, 4))


def test_common_prefix_leaves_every_prompt_a_token() -> None:
    assert common_prefix([(1, 2, 3, 4), (1, 2, 5)]) == (1, 2)
    assert common_prefix([(1, 2, 3), (1, 2, 3)]) == (1, 2)
    assert common_prefix([(1,), (1, 2, 3)]) == ()
    assert common_prefix([(4, 5)]) == (4,)


def test_a_large_vocabulary_goes_through_the_blocked_head(tmp_path: Path) -> None:
    from broadreach.engines.blocked_head import LARGE, BlockedHead

    directory = engine_models.save(tmp_path, "llama", vocab_size=LARGE + 700, num_hidden_layers=1)
    served = engine(directory)
    assert isinstance(served._runner.call._model.lm_head, BlockedHead)
    assert served.parameter_names == tuple(load_centre(directory))
    requests = engine_models.requests(6)
    assert answer(served, requests, Sampling(0.0, 8)) == oracle(directory, requests, 8)


def test_a_purely_recurrent_model_is_refused_in_one_line(tmp_path: Path) -> None:
    from transformers import MambaConfig, MambaForCausalLM

    MambaForCausalLM(MambaConfig(vocab_size=96, hidden_size=32, num_hidden_layers=1)).save_pretrained(tmp_path)
    engine_models.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UserError, match="MambaForCausalLM is a purely recurrent model"):
        HfEngine(tmp_path)
