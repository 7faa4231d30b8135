"""Peak memory of ES on SmolLM2-135M, as whole processes (Linux: VmHWM, the high-water mark of resident memory).

    python benchmarks/memory.py                   # bfloat16, 64 two-shot prompts, 40 tokens, 2 members
    python benchmarks/memory.py --dtype float32

Two processes: one that imports what ES needs, compiles the kernels on a few numbers and stops, and one that loads the
model, serves two members, applies an update of 32 directions and takes the digests. The figure to stay below: the
model's bfloat16 size + the float32 centre + keys and values of the batch + 400 MB over the idle process. Keys and
values are counted as our cache holds them: the tokens that all prompts share once, the rest per row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ALLOWANCE_MB = 400


def high_water_mb() -> float:
    """Largest resident size of this process so far."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not report VmHWM; run on Linux")


def idle() -> dict[str, float]:
    """Everything imported, nothing loaded."""
    import numpy as np
    import transformers.models.llama.modeling_llama

    import broadreach.engines.hf
    import broadreach.engines.select
    import broadreach.models.weights
    import broadreach.noise.update
    from broadreach.noise.perturb import check_known_answers
    from broadreach.types import Update

    check_known_answers()
    broadreach.noise.update.apply_update({"a": np.zeros(70000, np.float32)}, Update((0, 1), (2**29, 3), 30), 0, 1)
    assert transformers.models.llama.modeling_llama
    return {"peak": high_water_mb()}


def training(dtype: str, prompts: int, new_tokens: int) -> dict[str, float]:
    """One step of ES in small: two members, one update."""
    idle()
    sys.path.insert(0, str(Path(__file__).parent))
    from decode import _word_problem

    from broadreach.config import EngineSettings
    from broadreach.engines.runner import common_prefix
    from broadreach.engines.select import build_engine
    from broadreach.models.locate import locate
    from broadreach.models.weights import load_centre, load_tokenizer
    from broadreach.noise.members import population_members
    from broadreach.noise.update import apply_update, digest
    from broadreach.types import Perturbation, Request, Sampling, Update

    directory = locate("smollm2")
    marks: dict[str, float] = {}
    centre = load_centre(directory)
    marks["centre"] = high_water_mb()
    engine = build_engine(EngineSettings(kind="hf"), directory, dtype)
    engine.load(centre)
    marks["engine"] = high_water_mb()
    tokenizer = load_tokenizer(directory)
    requests = [Request(f"p{i}", _word_problem(tokenizer, i)) for i in range(prompts)]
    engine.generate(requests, population_members(2, "one_point"), Perturbation(0, 1, 0.001), Sampling(0.6, new_tokens))
    marks["generation"] = high_water_mb()
    apply_update(centre, Update(tuple(range(32)), tuple([2**29] * 32), 45), seed=0, step=1)
    digest(centre)
    engine.load(centre)
    engine.digest()
    weights = sum(array.size for array in centre.values())
    shared = len(common_prefix([request.prompt for request in requests]))
    own = max(len(request.prompt) for request in requests) - shared + new_tokens
    cache = 2 * 30 * 3 * 64 * (4 if dtype == "float32" else 2) * (shared + prompts * own)
    return {**marks, "peak": high_water_mb(), "weights": weights, "cache": cache / 2**20}


def in_process(role: str, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--role", role, "--dtype", options.dtype]
    command += ["--prompts", str(options.prompts), "--new-tokens", str(options.new_tokens)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    result: dict[str, float] = json.loads(lines[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--new-tokens", type=int, default=40)
    parser.add_argument("--role", choices=["idle", "training"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "idle":
        print(json.dumps(idle()))
        return
    if options.role == "training":
        print(json.dumps(training(options.dtype, options.prompts, options.new_tokens)))
        return
    base, run = in_process("idle", options)["peak"], in_process("training", options)
    half, centre = run["weights"] * 2 / 2**20, run["weights"] * 4 / 2**20
    limit = half + centre + run["cache"] + ALLOWANCE_MB
    used = run["peak"] - base
    print(f"SmolLM2-135M served in {options.dtype}, {options.prompts} prompts, {options.new_tokens} new tokens")
    for mark in ("centre", "engine", "generation", "peak"):
        print(f"  {mark:10s} {run[mark] - base:7.0f} MB over the idle process ({base:.0f} MB)")
    print(
        f"  limit      {limit:7.0f} MB = bfloat16 model {half:.0f} + centre {centre:.0f} + keys and values"
        f" {run['cache']:.0f} + {ALLOWANCE_MB}; {limit - used:.0f} MB to spare"
    )


if __name__ == "__main__":
    main()
