"""Makes src/broadreach/models/nano from nothing: tokenizer, two stages of pretraining, a Hugging Face directory.

python scripts/make_nano.py [--out DIR] [--seed N] [--worked STEPS] [--mixed STEPS]
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import nano_corpus
import nano_tokenizer
import nano_train
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

OUT = Path(__file__).parents[1] / "src" / "broadreach" / "models" / "nano"
CONTEXT = 256
LARGEST_VOCABULARY = 640
BATCH = 64


def tokenizer_of(seed: int) -> PreTrainedTokenizerFast:
    """The tokenizer, trained on 20,000 examples of the mixed corpus."""
    texts = (
        f"{question}\n{response}"
        for question, response in islice(nano_corpus.examples(seed, nano_corpus.MIXED), 20_000)
    )
    return nano_tokenizer.build(texts, LARGEST_VOCABULARY, CONTEXT)


def model_of(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """The untrained model."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the directory: weights in bfloat16, served in float32 (what `config.json` says)."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, max_new_tokens=44
    )
    stored = LlamaForCausalLM(model.config)
    stored.load_state_dict(model.state_dict())
    stored.generation_config = model.generation_config
    stored.to(torch.bfloat16).save_pretrained(folder)
    config = LlamaConfig.from_pretrained(folder)
    config.dtype = torch.float32
    config.save_pretrained(folder)
    nano_tokenizer.save(tokenizer, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worked", type=int, default=3000, help="steps of stage 1, only worked answers")
    parser.add_argument("--mixed", type=int, default=250, help="steps of stage 2, all ways of answering")
    chosen = parser.parse_args()
    started = time.monotonic()
    torch.set_num_threads(1)  # nano_train works in two threads
    tokenizer = tokenizer_of(chosen.seed)
    model = model_of(tokenizer, chosen.seed)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    worked = nano_corpus.examples(chosen.seed + 1, nano_corpus.WORKED)
    data = nano_train.batches(tokenizer, worked, BATCH, chosen.seed)
    nano_train.train(model, data, chosen.worked, 3e-3, "worked")
    save(model, tokenizer, chosen.out / "worked")
    mixed = nano_corpus.examples(chosen.seed + 2, nano_corpus.MIXED)
    data = nano_train.batches(tokenizer, mixed, BATCH, chosen.seed)
    nano_train.train(model, data, chosen.mixed, 1e-3, "mixed")
    save(model, tokenizer, chosen.out)
    print(f"{chosen.out}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
