"""Weights in and out of Hugging Face directories."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from broadreach.models.weights import (
    NO_LIMIT,
    build_model,
    end_tokens,
    export,
    load_centre,
    load_model,
    load_tokenizer,
    model_context_length,
    named_tensors,
    parameter_count,
)
from broadreach.types import UserError


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny bfloat16 Llama with tied embeddings, and a tokenizer with a chat template."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    directory = tmp_path_factory.mktemp("models") / "base"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=77, tie_word_embeddings=True, eos_token_id=3,
    )  # fmt: skip
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.generation_config.eos_token_id = [3, 4]
    model.save_pretrained(directory)
    words = {"<unk>": 0, "</s>": 5, **{f"w{i}": i for i in range(1, 32) if i != 5}}
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="</s>", unk_token="<unk>")
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    tokenizer.save_pretrained(directory)
    return directory


def test_the_centre_is_exact_sorted_and_holds_tied_tensors_once(base: Path) -> None:
    centre = load_centre(base)
    model = load_model(base, "bfloat16")
    assert list(centre) == sorted(centre)
    assert "lm_head.weight" not in centre
    assert parameter_count(centre) == sum(p.numel() for p in model.parameters())
    for name, tensor in named_tensors(model).items():
        assert centre[name].dtype == np.float32
        assert np.array_equal(centre[name], tensor.float().numpy())


def test_centre_names_are_those_of_the_checkpoint(base: Path) -> None:
    from safetensors import safe_open

    with safe_open(str(base / "model.safetensors"), framework="pt") as file:
        assert sorted(file.keys()) == list(load_centre(base))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_export_is_loadable_and_holds_the_cast_centre(base: Path, tmp_path: Path, dtype: str) -> None:
    centre = {name: array + np.float32(0.001) for name, array in load_centre(base).items()}
    out = export(centre, base, tmp_path / "out", dtype)
    model = AutoModelForCausalLM.from_pretrained(out)
    assert model.dtype == getattr(torch, dtype)
    for name, tensor in named_tensors(model).items():
        assert torch.equal(tensor, torch.from_numpy(centre[name]).to(tensor.dtype))
    assert AutoTokenizer.from_pretrained(out).chat_template == load_tokenizer(base).chat_template
    assert end_tokens(out) == end_tokens(base)
    if dtype == "float32":
        again = load_centre(out)
        assert all(np.array_equal(again[name], centre[name]) for name in centre)


def test_export_leaves_nothing_behind_when_it_fails(base: Path, tmp_path: Path) -> None:
    centre = load_centre(base)
    centre.pop("model.norm.weight")
    with pytest.raises(UserError, match=r"1 tensor names differ, first model\.norm\.weight"):
        export(centre, base, tmp_path / "out", "float32")
    assert list(tmp_path.iterdir()) == []


def test_export_does_not_overwrite(base: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty"):
        export(load_centre(base), base, tmp_path, "float32")


def test_a_built_model_computes_what_a_loaded_one_does(base: Path) -> None:
    built, loaded = build_model(base, "float32"), load_model(base, "float32")
    for name, tensor in named_tensors(built).items():
        tensor.copy_(named_tensors(loaded)[name])
    ids = torch.tensor([[1, 2, 3]])
    assert torch.equal(built(ids).logits, loaded(ids).logits)
    assert not any(parameter.requires_grad for parameter in built.parameters())


def test_end_tokens_join_generation_config_and_tokenizer(base: Path) -> None:
    assert end_tokens(base) == frozenset({3, 4, 5})


def test_context_length(base: Path, tmp_path: Path) -> None:
    assert model_context_length(base) == 77
    (tmp_path / "config.json").write_text(json.dumps({"n_positions": 12}))
    assert model_context_length(tmp_path) == 12
    (tmp_path / "config.json").write_text("{}")
    assert model_context_length(tmp_path) == NO_LIMIT


def test_a_broken_model_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(UserError, match="cannot load the model") as caught:
        load_model(tmp_path, "float32")
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="not supported; use one of"):
        load_model(tmp_path, "int8")
