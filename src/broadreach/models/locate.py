"""From what the user wrote (`nano`, `smollm2`, a directory, a Hub id) to a checked Hugging Face directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

from broadreach.types import UserError

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tokenizer_config.json")


def cache_dir() -> Path:
    """Where fetched models live: $BROADREACH_CACHE, or ~/.cache/broadreach."""
    return Path(os.environ.get("BROADREACH_CACHE") or Path.home() / ".cache" / "broadreach")


def locate(path_or_name: str | Path) -> Path:
    """The directory of a model: `nano`, `smollm2`, an existing directory or a Hub id; checked by `check_model_dir`.

    Raises UserError when it is not there, or lacks a configuration, weights, a tokenizer or a chat template.
    """
    directory = _find(str(path_or_name))
    check_model_dir(directory)
    return directory


def check_model_dir(directory: Path) -> None:
    """UserError unless the directory has a configuration, weights, a tokenizer and a chat template."""
    if not (directory / "config.json").is_file():
        raise UserError(f"model directory {directory} has no config.json; give a Hugging Face model directory")
    if not any(directory.glob("*.safetensors")):
        raise UserError(f"model directory {directory} has no *.safetensors; save it with safetensors first")
    if not any((directory / name).is_file() for name in TOKENIZER_FILES):
        raise UserError(f"model directory {directory} has no tokenizer; save one there (tokenizer.save_pretrained)")
    if not _has_chat_template(directory):
        raise UserError(
            f"the tokenizer in {directory} has no chat template; use an instruction-tuned model,"
            " or put a chat_template.jinja beside its tokenizer"
        )


def _find(name: str) -> Path:
    if name == "nano":
        directory = Path(__file__).parent / "nano"
        if not (directory / "config.json").is_file():
            raise UserError(f"the bundled model is missing at {directory}; reinstall broadreach")
        return directory
    if name == "smollm2":
        directory = cache_dir() / "smollm2"
        if not (directory / "config.json").is_file():
            raise UserError(f"smollm2 is not in the cache ({directory}); run: python scripts/fetch_smollm2.py")
        return directory
    directory = Path(name).expanduser()
    if directory.is_dir():
        return directory
    if not _looks_like_hub_id(name):
        raise UserError(
            f"model directory {name} does not exist; give nano, smollm2, a directory or a Hub id (owner/name)"
        )
    return _download(name)


def _looks_like_hub_id(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 2 and all(parts) and not name.startswith((".", "~", "/"))


def _download(hub_id: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    patterns = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]
    try:
        return Path(snapshot_download(hub_id, allow_patterns=patterns))
    except GatedRepoError:
        raise UserError(f"model {hub_id} is gated; accept its terms on the Hub and log in (hf auth login)") from None
    except RepositoryNotFoundError:
        raise UserError(f"model {hub_id} is neither a directory here nor a model on the Hub; check the name") from None
    except Exception as error:  # the client raises many kinds when there is no network
        reason = (str(error).strip().splitlines() or [""])[0][:120]
        raise UserError(
            f"model {hub_id} is not a directory, and the Hub did not answer ({type(error).__name__}: {reason});"
            " check the name and the network, or give a local directory"
        ) from None


def _has_chat_template(directory: Path) -> bool:
    if (directory / "chat_template.jinja").is_file() or (directory / "chat_template.json").is_file():
        return True
    settings = directory / "tokenizer_config.json"
    if not settings.is_file():
        return False
    try:
        return bool(json.loads(settings.read_text(encoding="utf-8")).get("chat_template"))
    except ValueError as error:
        raise UserError(f"{settings} is not valid JSON ({error}); save the tokenizer again") from None
