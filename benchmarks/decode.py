"""Tokens per second: our decoding against `generate()`, and all members at once against one at a time.

    python benchmarks/decode.py                  # the small model, as many threads as torch uses
    python benchmarks/decode.py --model smollm2  # SmolLM2-135M in float32 and bfloat16 (minutes)

Every line is the same work done by two programs, the median of the rounds, rounds interleaved.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from broadreach.engines.hf import HfEngine
from broadreach.engines.population import PopulationEngine
from broadreach.models.locate import locate
from broadreach.models.weights import end_tokens, load_centre, load_model, load_tokenizer
from broadreach.noise.members import population_members
from broadreach.types import Member, Perturbation, Request, Sampling

Work = Callable[[], int]
"""Does the work once; returns the number of response tokens."""


def compare(rounds: int, **programs: Work) -> None:
    """Run the programs in turn and print median seconds and tokens per second of each."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    tokens: dict[str, int] = {}
    for _ in range(rounds):
        for name, work in programs.items():
            start = time.perf_counter()
            tokens[name] = work()
            seconds[name].append(time.perf_counter() - start)
    slowest = max(statistics.median(values) for values in seconds.values())
    for name, values in seconds.items():
        median = statistics.median(values)
        print(
            f"  {name:28s} {median:8.2f} s  {tokens[name] / median:8.0f} tokens/s"
            f"  {slowest / median:5.2f} x  (best {min(values):.2f} s, {tokens[name]} tokens)",
            flush=True,
        )


def small_llama(directory: Path) -> Path:
    """A random Llama of 0.86 M weights (4 layers of 128) that never ends early, with a dummy tokenizer."""
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    config = LlamaConfig(
        vocab_size=512, hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=256, tie_word_embeddings=True, eos_token_id=None,
        bos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(directory)
    words = {f"w{i}": i for i in range(512)}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")))
    tokenizer.chat_template = "{{ messages }}"
    tokenizer.save_pretrained(directory)
    return directory


def small(rounds: int) -> None:
    """32 members x 32 prompts x 44 tokens on the 0.86 M model, greedy."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = small_llama(Path(scratch) / "model")
        centre = load_centre(directory)
        requests = [
            Request(f"p{i}", (1, 2, 3, 4, *[5 + (i * 7 + j * 11) % 500 for j in range(12 + i % 8)])) for i in range(32)
        ]
        members = population_members(32, "one_point")
        one, many = HfEngine(directory), PopulationEngine(directory)
        outputs: dict[str, list[list[tuple[int, ...]]]] = {}

        def run(name: str, engine: HfEngine | PopulationEngine) -> int:
            answers = engine.generate(requests, members, Perturbation(0, 1, 0.005), Sampling(0.0, 44))
            outputs[name] = [[response.tokens for response in row] for row in answers]
            return sum(len(tokens) for row in outputs[name] for tokens in row)

        for engine in (one, many):
            engine.load(centre)
            engine.generate(requests, members[:2], Perturbation(0, 1, 0.005), Sampling(0.0, 2))
        print(f"0.86 M Llama, {torch.get_num_threads()} threads, 32 members x 32 prompts x 44 tokens")
        compare(rounds, one_at_a_time=lambda: run("one", one), population=lambda: run("many", many))
        same = sum(
            a == b for x, y in zip(outputs["one"], outputs["many"], strict=True) for a, b in zip(x, y, strict=True)
        )
        print(f"  responses with equal tokens: {same} of {32 * 32}")


def smollm2(rounds: int, dtypes: list[str], prompts: int, new_tokens: int) -> None:
    """Two-shot word problems on SmolLM2-135M, greedy."""
    directory = locate("smollm2")
    tokenizer, ends = load_tokenizer(directory), end_tokens(directory)
    centre = load_centre(directory)
    requests = [Request(f"p{i}", _word_problem(tokenizer, i)) for i in range(prompts)]
    for dtype in dtypes:
        engine = HfEngine(directory, dtype)
        engine.load(centre)
        model = load_model(directory, dtype)

        def ours(engine: HfEngine = engine) -> int:
            answers = engine.generate(requests, [Member(0, 0, 0)], Perturbation(0, 1, 0.001), Sampling(0.0, new_tokens))
            return sum(len(response.tokens) for response in answers[0])

        def stock(model: torch.nn.Module = model) -> int:
            longest = max(len(request.prompt) for request in requests)
            pads = [longest - len(request.prompt) for request in requests]
            ids = torch.tensor([[2] * p + list(r.prompt) for p, r in zip(pads, requests, strict=True)])
            mask = torch.tensor([[0] * p + [1] * (longest - p) for p in pads])
            with torch.inference_mode():
                out = model.generate(ids, attention_mask=mask, max_new_tokens=new_tokens, do_sample=False)  # type: ignore[operator]
            rows = out[:, longest:].tolist()
            return sum(next((i + 1 for i, t in enumerate(row) if t in ends), len(row)) for row in rows)

        print(f"SmolLM2-135M, {dtype}, {torch.get_num_threads()} threads, {prompts} prompts, up to {new_tokens} tokens")
        compare(rounds, ours=ours, generate=stock)


def _word_problem(tokenizer: object, number: int) -> tuple[int, ...]:
    shots = [
        ("Ann has 3 pens and gets 5 more. How many pens does she have?", "She has 3 + 5 = 8 pens. \\boxed{8}"),
        ("Bob had 9 cats and gave 2 away. How many cats are left?", "He has 9 - 2 = 7 cats. \\boxed{7}"),
    ]
    asked = f"Tom has {number} apples and buys {number * 7 % 13} more." + " He likes fruit." * (number % 4)
    turns = [turn for q, a in shots for turn in ({"role": "user", "content": q}, {"role": "assistant", "content": a})]
    turns.append({"role": "user", "content": asked + " How many apples does he have?"})
    return tuple(tokenizer.apply_chat_template(turns, add_generation_prompt=True)["input_ids"])  # type: ignore[attr-defined]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["small", "smollm2"], default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--dtype", action="append", choices=["float32", "bfloat16"])
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.model == "small":
        small(options.rounds)
    else:
        smollm2(options.rounds, options.dtype or ["float32", "bfloat16"], options.prompts, options.new_tokens)
