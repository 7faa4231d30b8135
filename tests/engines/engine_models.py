"""Tiny random models of several architectures, saved as Hugging Face directories with a word-level tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from broadreach.types import Request

VOCABULARY = 96
END = 2


ENDS = [END, 11, 23, 37, 41, 59]
"""Ids that end a response; several, so that random models do end some."""


def llama(**changes: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(LlamaConfig(**{**_sizes(), **_heads(), "tie_word_embeddings": True, **changes}))


def qwen2(**changes: Any) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    return Qwen2ForCausalLM(Qwen2Config(**_sizes(), **_heads(), tie_word_embeddings=True, **changes))


def qwen3(**changes: Any) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    return Qwen3ForCausalLM(Qwen3Config(**_sizes(), **_heads(), head_dim=8, tie_word_embeddings=False, **changes))


def gemma3(**changes: Any) -> Any:
    """Norms that add one to the weight, scaled embeddings, four norms a layer, and a sliding window of 8."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    settings = {
        "tie_word_embeddings": False,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
        **changes,
    }
    return Gemma3ForCausalLM(Gemma3TextConfig(**_sizes(), **_heads(), head_dim=8, **settings))


def gpt2(**changes: Any) -> Any:
    """Conv1D, layer norms with biases, learned positions."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=END,
        pad_token_id=0, **changes,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def _sizes() -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "max_position_embeddings": 128,
        "bos_token_id": 1,
        "eos_token_id": END,
        "pad_token_id": 0,
    }


def _heads() -> dict[str, Any]:
    return {"num_attention_heads": 4, "num_key_value_heads": 2}


ARCHITECTURES = {"llama": llama, "qwen2": qwen2, "qwen3": qwen3, "gemma3": gemma3, "gpt2": gpt2}


def save(directory: Path, architecture: str, dtype: torch.dtype = torch.float32, seed: int = 0, **changes: Any) -> Path:
    """Build, randomise generously (so that greedy output varies) and save one model with its tokenizer."""
    torch.manual_seed(seed)
    model = ARCHITECTURES[architecture](**changes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.ndim > 1 else 0.1))
            if parameter.ndim == 1 and "norm" in name and architecture != "gemma3":
                parameter.add_(1.0)
    model.generation_config.eos_token_id = ENDS
    model.to(dtype).save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return directory


def save_mixture_of_experts(directory: Path) -> Path:
    """A model with modules that the population engine does not know."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=96, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=2, max_position_embeddings=64,
    )  # fmt: skip
    MixtralForCausalLM(config).save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return directory


def requests(count: int, *, shared: int = 3, samples: int = 1, shortest: int = 1, longest: int = 9) -> list[Request]:
    """Ragged prompts: `shared` common tokens, then between `shortest` and `longest` of their own."""
    made = []
    for i in range(count):
        own = shortest + (i * 5) % (longest - shortest + 1)
        prompt = (*range(5, 5 + shared), *(5 + (31 * i + 7 * j * (i + 2)) % 90 for j in range(own)))
        made += [Request(f"problem-{i}", prompt, sample=s) for s in range(samples)]
    return made


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<s>", "</s>", "<unk>"] + [f"w{i}" for i in range(4, VOCABULARY)]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    wrapped.chat_template = (
        "{{ '<s> ' }}{% for m in messages %}{{ m['content'] + ' ' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'w4 ' }}{% endif %}"
    )
    return wrapped
