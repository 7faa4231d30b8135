"""A model of a few thousand random weights that knows every byte, and rewards that differ: GRPO in a second."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from broadreach.config import load_config

TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

SETTINGS = [
    "task.name=nano-chain",
    "task.reward=grpo_tiny:varied",
    "task.max_train=24",
    "train.method=grpo",
    "grpo.group_size=4",
    "grpo.mini_batch=2",
    "grpo.learning_rate=0.003",
    "es.population=3",
    "train.batch=4",
    "train.updates=4",
    "train.stop_when_idle=0",
    "sampling.max_new_tokens=10",
    "engine.kind=hf",
    "engine.threads=1",
    "run.snapshot_every=1",
    "run.keep_snapshots=3",
]


def save_tiny_model(folder: Path, seed: int = 0) -> Path:
    """A Hugging Face directory with a random Llama of one layer; every ninth token ends a response."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|pad|>", "<|end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + 2, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|end|>", chat_template=TEMPLATE
    )
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=512,
            tie_word_embeddings=True,
            pad_token_id=fast.pad_token_id,
            eos_token_id=fast.eos_token_id,
            bos_token_id=None,
            initializer_range=0.3,
        )
    )
    model.generation_config.eos_token_id = list(range(1, len(fast), 9))
    fast.save_pretrained(folder)
    model.save_pretrained(folder)
    return folder


def configure(model, folder, *extra):
    """The tiny settings, with `extra` ones on top."""
    return load_config([], [*SETTINGS, f"model.path={model}", f"run.dir={folder}", *extra])


def varied(prompts, completions, completion_ids, **columns):
    """A reward in sevenths that depends on every token."""
    return [sum(ids) % 7 / 6 for ids in completion_ids]


def constant(prompts, completions, **columns):
    """Nothing to learn from."""
    return [0.5 for _ in completions]
