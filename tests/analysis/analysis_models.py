"""Small Hugging Face directories of made-up weights, for the weight-space tests."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

SHAPES = {
    "model.embed_tokens.weight": (64, 24),
    "model.layers.0.input_layernorm.weight": (24,),
    "model.layers.0.mlp.down_proj.weight": (24, 96),
    "model.layers.0.self_attn.q_proj.bias": (24,),
    "model.layers.0.self_attn.q_proj.weight": (24, 24),
    "model.layers.11.self_attn.o_proj.weight": (24, 24),
    "model.norm.weight": (24,),
}


def weights(scale: float = 0.03, seed: int = 0, shapes: dict = SHAPES) -> dict[str, np.ndarray]:
    """Normal weights of spread `scale`; norm weights near 1."""
    generator = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes.items():
        value = generator.standard_normal(shape, dtype=np.float32) * np.float32(scale)
        found[name] = value + np.float32(1) if "norm" in name else value
    return found


def bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 values rounded to bfloat16."""
    return torch.from_numpy(values).bfloat16().float().numpy()


def save(folder: Path, tensors: dict, dtype: torch.dtype, shards: int = 1, config: dict | None = None) -> Path:
    """Write tensors as a model directory of one or several safetensors files."""
    folder.mkdir(parents=True)
    ready = {name: torch.from_numpy(np.ascontiguousarray(value)).to(dtype) for name, value in tensors.items()}
    if shards == 1:
        save_file(ready, folder / "model.safetensors", {"format": "pt"})
    else:
        places = {name: f"model-{i % shards + 1:05d}-of-{shards:05d}.safetensors" for i, name in enumerate(ready)}
        for file in set(places.values()):
            save_file({name: ready[name] for name in ready if places[name] == file}, folder / file, {"format": "pt"})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    (folder / "config.json").write_text(json.dumps(config or {}))
    return folder
