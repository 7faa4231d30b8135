"""The bundled model: small, loadable by anyone, with a chat template and a tokenizer that loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import broadreach
from broadreach.tasks.nano import NANO_TASKS

NANO = Path(broadreach.__file__).parent / "models" / "nano"


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(NANO)


@pytest.fixture(scope="module")
def model() -> Any:
    return AutoModelForCausalLM.from_pretrained(NANO).eval()


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in NANO.iterdir()) <= 2_500_000


def test_it_is_a_llama_of_at_most_a_million_parameters(model: Any) -> None:
    assert model.config.model_type == "llama"
    assert model.num_parameters() <= 1_000_000
    assert model.dtype == torch.float32


def test_stored_weights_are_the_base(model: Any) -> None:
    for name, weight in model.named_parameters():
        assert torch.equal(weight, weight.to(torch.bfloat16).float()), name
        assert torch.isfinite(weight).all(), name


def test_chat_template_renders_turns(tokenizer: Any) -> None:
    turns = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "r"},
    ]
    text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert text == "<|system|>s<|user|>q<|assistant|>a<|end|><|user|>r<|assistant|>"


@pytest.mark.parametrize("text", ["12+7=19\n\\boxed{19}", "<answer>(3+4)*5</answer>", "Grüße, 世界 \t\n  x", "a  b"])
def test_tokenizer_round_trips_any_text(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


def test_digits_are_single_and_wrappers_whole(tokenizer: Any) -> None:
    assert tokenizer.tokenize("123") == ["1", "2", "3"]
    assert tokenizer.tokenize("\\boxed{") == ["\\boxed{"]
    assert tokenizer.tokenize("<answer></answer>") == ["<answer>", "</answer>"]


def test_prompts_and_answers_fit_the_context(tokenizer: Any, model: Any) -> None:
    for task in NANO_TASKS.values():
        prompts = [task().messages(problem) for problem in task().problems("test")]
        ids = tokenizer.apply_chat_template(prompts, add_generation_prompt=True, return_dict=False)
        assert max(map(len, ids)) + 44 <= model.config.max_position_embeddings
        for _, answer in task().worked_examples():
            assert len(tokenizer(answer)["input_ids"]) < 44


def test_it_answers_in_the_required_form_more_often_than_not(tokenizer: Any, model: Any) -> None:
    task = NANO_TASKS["nano-chain"]()
    problems = task.problems("test")[:32]
    chats = [task.messages(problem) for problem in problems]
    inputs = tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        out = model.generate(**inputs, do_sample=False)[:, inputs["input_ids"].shape[1] :]
    texts = tokenizer.batch_decode(out, skip_special_tokens=True)
    scores = [task.score(problem, text) for problem, text in zip(problems, texts, strict=True)]
    assert sum(score.format_ok for score in scores) > 16
