"""Weights in and out of Hugging Face directories: served models, the float32 centre, and exports."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from broadreach.types import Centre, UserError

if TYPE_CHECKING:
    import torch
    from torch import nn

DTYPES = ("float32", "bfloat16", "float16")
NO_LIMIT = 2**31 - 1
"""The context length of recurrent models and of those with relative positions."""
COPIED_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt")


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `float32`, `bfloat16` or `float16`; UserError for any other name."""
    import torch

    if name not in DTYPES:
        raise UserError(f"model.dtype {name!r} is not supported; use one of {', '.join(DTYPES)}")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def load_model(directory: Path, dtype: str) -> nn.Module:
    """Load a causal language model for inference: eval mode, no gradients, parameters in `dtype`."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    with _quiet():
        try:
            model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch_dtype(dtype), local_files_only=True)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise UserError(f"cannot load the model in {directory} ({_first_line(error)}); check its files") from error
    loaded: nn.Module = model.eval().requires_grad_(False)
    return loaded


def build_model(directory: Path, dtype: str) -> nn.Module:
    """The model of a directory with parameters allocated but not read: fill them with `assign`.

    Reads the weights after all when the checkpoint keeps more than parameters (buffers that are not computed).
    """
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.initialization import no_init_weights

    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        with no_init_weights():
            model = AutoModelForCausalLM.from_config(config, dtype=torch_dtype(dtype))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot build the model in {directory} ({_first_line(error)}); check config.json") from error
    model.tie_weights()
    if set(model.state_dict()) != set(dict(model.named_parameters(remove_duplicate=False))):
        return load_model(directory, dtype)
    built: nn.Module = model.eval().requires_grad_(False)
    return built


def named_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters by canonical name, sorted, tied ones once under the name that save_pretrained writes."""
    return {name: tensor.detach() for name, tensor in sorted(model.named_parameters())}


def load_centre(directory: Path) -> Centre:
    """Read a model's weights as float32 arrays by canonical name, sorted; every value is exact.

    The arrays own the memory the model was loaded into, so there is one copy.
    """
    return {name: tensor.numpy() for name, tensor in named_tensors(load_model(directory, "float32")).items()}


def load_tokenizer(directory: Path) -> Any:
    """The tokenizer of a model directory, one object a process; UserError without one or without a chat template."""
    newest = max((path.stat().st_mtime_ns for path in directory.glob("*.j*")), default=0)
    return _tokenizer(directory.resolve(), newest)


@functools.lru_cache(maxsize=2)
def _tokenizer(directory: Path, newest: int) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"cannot load the tokenizer in {directory} ({_first_line(error)}); save it again") from error
    if not tokenizer.chat_template:
        raise UserError(f"the tokenizer in {directory} has no chat template; use an instruction-tuned model")
    _give_back_freed_memory()
    return tokenizer


def _give_back_freed_memory() -> None:
    """Hand free heap pages to the system (glibc only): parsing a tokenizer leaves tens of megabytes of them."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def model_context_length(directory: Path) -> int:
    """Most positions (prompt plus response tokens) that the model was built for; NO_LIMIT when it names none."""
    values = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    values = values.get("text_config", values)
    for key in ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"):
        if isinstance(values.get(key), int):
            return int(values[key])
    return NO_LIMIT


def end_tokens(directory: Path) -> frozenset[int]:
    """Token ids that end a response: those of the generation configuration, the configuration and the tokenizer.

    Like `generate()`, the generation configuration decides; the tokenizer's own end token (which closes a chat turn)
    always counts.
    """
    found: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        path = directory / name
        value = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id") if path.is_file() else None
        if value is not None:
            found.update([value] if isinstance(value, int) else value)
            break
    tokenizer_end = load_tokenizer(directory).eos_token_id
    if tokenizer_end is not None:
        found.add(int(tokenizer_end))
    return frozenset(found)


def export(centre: Centre, base_dir: Path, out_dir: Path, dtype: str) -> Path:
    """Write cast(centre, dtype) as a Hugging Face directory that AutoModelForCausalLM loads; written aside, renamed.

    Configuration, tokenizer and chat template are those of `base_dir`. UserError when `out_dir` already has a model.
    """
    if out_dir.exists() and any(out_dir.iterdir()):
        raise UserError(f"{out_dir} already exists and is not empty; choose another directory or remove it")
    aside = out_dir.with_name(f".{out_dir.name}.partial")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        _write_model(centre, base_dir, aside, dtype)
        if out_dir.exists():
            out_dir.rmdir()
        aside.rename(out_dir)
    except OSError as error:
        raise UserError(f"cannot write {out_dir} ({error}); free some space or choose another place") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return out_dir


def _write_model(centre: Centre, base_dir: Path, out: Path, dtype: str) -> None:
    model = build_model(base_dir, dtype)
    assign(named_tensors(model), centre)
    with _quiet():
        model.save_pretrained(out)  # type: ignore[operator]
    for path in _side_files(base_dir):
        shutil.copyfile(path, out / path.name)


def assign(tensors: dict[str, torch.Tensor], centre: Centre) -> None:
    """Copy cast(centre) into the tensors in place; UserError when names or shapes are not the model's."""
    import torch

    check_names(tensors, centre)
    for name, tensor in tensors.items():
        tensor.copy_(torch.from_numpy(centre[name]))


def check_names(tensors: dict[str, torch.Tensor], centre: Centre) -> None:
    """UserError naming the first tensor by which the centre and the model differ in name or shape."""
    if missing := sorted(set(tensors) ^ set(centre)):
        raise UserError(
            f"the weights do not belong to this model: {len(missing)} tensor names differ, first {missing[0]};"
            " use the base model that the weights came from"
        )
    for name, tensor in tensors.items():
        if tuple(tensor.shape) != centre[name].shape:
            raise UserError(
                f"the weights do not belong to this model: {name} has shape {centre[name].shape}, the model wants"
                f" {tuple(tensor.shape)}; use the base model that the weights came from"
            )


def _side_files(directory: Path) -> Iterator[Path]:
    for pattern in COPIED_PATTERNS:
        for path in sorted(directory.glob(pattern)):
            if path.name != "config.json" and not path.name.endswith(".index.json"):
                yield path


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"


class _quiet:
    """Hide the loading bars of transformers, and put the setting back."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self._was_on = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        if self._was_on:
            logging.enable_progress_bar()


def parameter_count(centre: Centre) -> int:
    """Number of weights, tied ones once."""
    return int(sum(np.prod(array.shape, dtype=np.int64) for array in centre.values()))
