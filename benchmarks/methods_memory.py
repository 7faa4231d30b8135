"""Peak resident memory of one update of ES and of GRPO on SmolLM2-135M, as whole processes (Linux: ru_maxrss).

    python benchmarks/methods_memory.py

The same batch for both: 64 responses of at most 64 tokens to two-shot SVAMP problems, float32. ES serves two members,
one after the other, with 64 problems each (more members take more time, not more memory); GRPO draws 8 responses to 8
problems, keeps AdamW's two moments and the reference, and passes back with its default micro-batch. The third process
imports what both need and stops: what is over it is the method's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

COMMON = ["train.updates=1", "sampling.max_new_tokens=64", "model.dtype=float32", "run.snapshot_every=1000"]
ES = ["es.population=2", "es.sigma=0.004", "train.batch=64"]
GRPO = ["train.method=grpo", "train.batch=8", "grpo.group_size=8", "grpo.mini_batch=8", "grpo.learning_rate=1e-5"]
IDLE = "import broadreach.training.es, broadreach.engines.hf, broadreach.training.grpo, trl.trainer.grpo_trainer"


def peak_mb(command: list[str]) -> float:
    """Largest resident size of a child process, MiB; stops when it fails."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 1024


def train(settings: list[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        flags = [part for item in [*COMMON, *settings] for part in ("--set", item)]
        return peak_mb(
            [sys.executable, "-m", "broadreach", "train", "smollm2-svamp", *flags, "--run", folder, "--json"]
        )


def main() -> None:
    idle = peak_mb([sys.executable, "-c", IDLE])
    es, grpo = train(ES), train(GRPO)
    print(f"imports only {idle:7.0f} MB")
    print(f"ES           {es:7.0f} MB, {es - idle:6.0f} over the imports")
    print(f"GRPO         {grpo:7.0f} MB, {grpo - idle:6.0f} over the imports")
    print(f"ratio GRPO / ES: {grpo / es:.2f} whole processes, {(grpo - idle) / (es - idle):.2f} over the imports")


if __name__ == "__main__":
    main()
