"""How fast noise is: `python benchmarks/noise_kernels.py [--elements 100_000_000] [--members 32] [--rounds 5]`.

Prints medians over rounds that alternate between the contestants, so that a busy machine slows all of them alike:
1. fused perturbation of float32 values against torch.Tensor.normal_ plus add_, both with `--threads` threads
   (target: at least 1.2 times the rate), and the same into bfloat16;
2. fused update of N members: seconds per member against one perturbation (target: at least the same rate);
3. seeded sampling of 64 rows of a vocabulary of 49,152 (target: under 25 ms).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numba
import numpy as np
import torch

from broadreach import noise
from broadreach.types import Update


def contestants(elements: int, members: int) -> dict[str, Callable[[], object]]:
    theta = np.zeros(elements, np.float32)
    master, scratch = torch.from_numpy(theta), torch.empty(elements)
    single, half = torch.empty(elements), torch.empty(elements, dtype=torch.bfloat16)
    where = {"seed": 1, "step": 2, "direction": 3, "sigma": 0.001, "name": "benchmark"}

    def torch_noise() -> None:
        scratch.normal_()
        torch.add(master, scratch, alpha=0.001, out=single)

    def torch_in_place() -> None:
        single.add_(scratch.normal_(), alpha=0.001)

    quantised = noise.quantise([0.003 / (i + 1) for i in range(members)])
    assert quantised is not None
    update, centre = Update(tuple(range(members)), *quantised), {"benchmark": theta}
    return {
        "torch normal_ + add": torch_noise,
        "torch normal_ + add_ in place": torch_in_place,
        "perturb float32": lambda: noise.perturb_into(theta, single, sign=1, **where),
        "perturb bfloat16": lambda: noise.perturb_into(theta, half, sign=1, **where),
        "restore bfloat16": lambda: noise.restore_into(theta, half),
        f"update, {members} members": lambda: noise.apply_update(centre, update, seed=1, step=2),
    }


def sampling() -> Callable[[], object]:
    rows = noise.sample_rows([str(i) for i in range(64)], [0] * 64, [0] * 64, seed=1, step=0)
    logits = torch.from_numpy(np.random.default_rng(0).standard_normal((64, 49152)).astype(np.float32)) * 2.5
    return lambda: noise.sample_tokens(logits, 0.6, rows, np.arange(64))


def measure(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of each call's seconds over alternating rounds, after one round to compile and touch memory."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=100_000_000)
    parser.add_argument("--members", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(options.threads)

    medians = measure(contestants(options.elements, options.members), options.rounds)
    print(f"{options.elements:,} elements, {options.threads} threads, median of {options.rounds} rounds")
    for name, median in medians.items():
        print(f"  {name:32s} {median:8.3f} s   {median / options.elements * 1e9:7.2f} ns/element")
    perturb, update = medians["perturb float32"], medians[f"update, {options.members} members"]
    baseline = min(medians["torch normal_ + add"], medians["torch normal_ + add_ in place"])
    print(f"perturbation against torch: {baseline / perturb:.2f} times the rate (target 1.2)")
    print(f"update per member against perturbation: {perturb * options.members / update:.2f} (target 1.0)")
    sample = measure({"sample": sampling()}, options.rounds)["sample"]
    print(f"sampling 64 rows of 49,152: {sample * 1e3:.1f} ms (target 25)")


if __name__ == "__main__":
    main()
