"""Makes src/broadreach/models/nano from nothing: tokenizer, two stages of pretraining, a Hugging Face directory.

python scripts/make_nano.py [--out DIR] [--seed N] [--worked STEPS] [--mixed STEPS] [--stage-one DIR]
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
from nano_muon import Muon
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

OUT = Path(__file__).parents[1] / "src" / "broadreach" / "models" / "nano"
CONTEXT = 256
LARGEST_VOCABULARY = 640
BATCH = 32
NEW_TOKENS = 44


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
        initializer_range=0.06,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the directory: weights in bfloat16, served in float32 (what `config.json` says)."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = LlamaForCausalLM(model.config)
    stored.load_state_dict(model.state_dict())
    stored.generation_config = GenerationConfig(
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, max_new_tokens=NEW_TOKENS
    )
    stored.to(torch.bfloat16).save_pretrained(folder)
    config = LlamaConfig.from_pretrained(folder)
    config.dtype = torch.float32
    config.save_pretrained(folder)
    nano_tokenizer.save(tokenizer, folder)
    for path in folder.glob("*.*"):
        path.chmod(0o644)


def worked_stage(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, steps: int, seed: int) -> None:
    """Stage 1: the worked way of all families, until it is nearly always right."""
    corpus = nano_corpus.examples(seed + 1, nano_corpus.WORKED)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    chosen = {id(matrix) for matrix in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=0.02),
        torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05),
    ]
    nano_train.train(model, nano_train.batches(tokenizer, corpus, BATCH, seed), steps, optimizers, "worked")


def mixed_stage(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, steps: int, seed: int) -> None:
    """Stage 2: all ways of answering, so that post-training has something to choose from."""
    corpus = nano_corpus.examples(seed + 2, nano_corpus.MIXED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.05)
    nano_train.train(model, nano_train.batches(tokenizer, corpus, BATCH, seed), steps, [optimizer], "mixed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worked", type=int, default=4500, help="steps of stage 1, only worked answers")
    parser.add_argument("--mixed", type=int, default=300, help="steps of stage 2, all ways of answering")
    parser.add_argument("--threads", type=int, default=1, help="another number rounds sums differently")
    parser.add_argument(
        "--stage-one", type=Path, help="keep the model after stage 1 here; if it is there, start from it"
    )
    chosen = parser.parse_args()
    started = time.monotonic()
    torch.set_num_threads(chosen.threads)
    tokenizer = tokenizer_of(chosen.seed)
    model = model_of(tokenizer, chosen.seed)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    if chosen.stage_one and (chosen.stage_one / "weights.pt").exists():
        model.load_state_dict(torch.load(chosen.stage_one / "weights.pt"))
    else:
        worked_stage(model, tokenizer, chosen.worked, chosen.seed)
    if chosen.stage_one:
        save(model, tokenizer, chosen.stage_one)
        torch.save(model.state_dict(), chosen.stage_one / "weights.pt")
    mixed_stage(model, tokenizer, chosen.mixed, chosen.seed)
    save(model, tokenizer, chosen.out)
    print(f"{chosen.out}: {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
