"""Time and memory of `analyze drift` on a made-up bfloat16 pair: python benchmarks/drift.py [billions of weights].

The pair (two shards each, names and shapes of a Qwen2.5-1.5B) lies in a temporary folder and is removed at the end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HIDDEN, MLP, VOCABULARY, LAYERS = 1536, 8960, 151936, 28
PIECE = 1 << 22


def shapes(scale: float) -> dict[str, tuple[int, ...]]:
    """Names and shapes, with layers and vocabulary scaled to the wanted size."""
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (int(VOCABULARY * scale), HIDDEN)}
    for layer in range(max(1, round(LAYERS * scale))):
        at = f"model.layers.{layer}"
        found |= {f"{at}.self_attn.{name}_proj.weight": (HIDDEN, HIDDEN) for name in "qo"}
        found |= {f"{at}.self_attn.{name}_proj.weight": (256, HIDDEN) for name in "kv"}
        found |= {f"{at}.mlp.{name}_proj.weight": (MLP, HIDDEN) for name in ("gate", "up")}
        found |= {f"{at}.mlp.down_proj.weight": (HIDDEN, MLP)}
        found |= {f"{at}.{name}_layernorm.weight": (HIDDEN,) for name in ("input", "post_attention")}
    return found | {"model.norm.weight": (HIDDEN,)}


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 to the nearest bfloat16, as 16-bit words."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_model(folder: Path, names: dict[str, tuple[int, ...]], sigma: float) -> None:
    """Two shards of weights of spread 0.03 that drifted by `sigma`."""
    folder.mkdir()
    half, index = len(names) // 2, {}
    for shard, part in enumerate((list(names)[:half], list(names)[half:])):
        file_name = f"model-{shard + 1:05d}-of-00002.safetensors"
        index |= dict.fromkeys(part, file_name)
        header, place = {}, 0
        for name in part:
            size = 2 * int(np.prod(names[name]))
            header[name] = {"dtype": "BF16", "shape": list(names[name]), "data_offsets": [place, place + size]}
            place += size
        text = json.dumps(header).encode()
        with open(folder / file_name, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            pool = np.random.default_rng(0).standard_normal(PIECE, dtype=np.float32) * np.float32(0.03)
            pool += np.random.default_rng(1).standard_normal(PIECE, dtype=np.float32) * np.float32(sigma)
            words = to_bfloat16(pool)
            for name in part:
                left = int(np.prod(names[name]))
                while left:
                    file.write(words[: min(left, PIECE)].tobytes())
                    left -= min(left, PIECE)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def main() -> None:
    """Make the pair, measure it, print seconds and peak memory of the measurement."""
    scale = (float(sys.argv[1]) if len(sys.argv) > 1 else 1.54) / 1.54
    names = shapes(scale)
    with tempfile.TemporaryDirectory() as temporary:
        start = time.perf_counter()
        for folder, sigma in (("a", 0.0), ("b", 7e-4)):
            write_model(Path(temporary) / folder, names, sigma)
        made = time.perf_counter() - start
        child = os.fork()
        if child == 0:
            measure(Path(temporary), made)
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            raise SystemExit("the measurement failed")


def measure(folder: Path, made: float) -> None:
    """Run in a process of its own, so that making the pair does not count."""
    from broadreach.analysis.drift import drift
    from broadreach.analysis.drift_files import open_weights

    start = time.perf_counter()
    found = drift(open_weights(folder / "a"), open_weights(folder / "b"))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{found.total.size / 1e9:.2f} B parameters: {seconds:.1f} s, peak {peak:.2f} GiB (pair made in {made:.0f} s)"
    )
    print(
        f"relative L2 {found.total.relative:.4%}; s_tau {[round(100 * share, 2) for share in found.total.sparsity]} %"
    )
    print(f"load average {os.getloadavg()}, {os.cpu_count()} threads")


if __name__ == "__main__":
    main()
