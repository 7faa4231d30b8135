"""Finding a model, and one clear line when something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broadreach.models import locate as module
from broadreach.models.locate import cache_dir, locate
from broadreach.types import UserError


def complete(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(b"")
    (directory / "tokenizer.json").write_text("{}")
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    return directory


def test_an_existing_directory_is_taken(tmp_path: Path) -> None:
    assert locate(str(complete(tmp_path))) == tmp_path


def test_a_template_file_counts(tmp_path: Path) -> None:
    complete(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    assert locate(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("removed", "message"),
    [
        ("config.json", "has no config.json"),
        ("model.safetensors", "no \\*.safetensors"),
        ("tokenizer.json", "no tokenizer"),
    ],
)
def test_missing_parts_are_named(tmp_path: Path, removed: str, message: str) -> None:
    complete(tmp_path)
    (tmp_path / removed).unlink()
    if removed == "tokenizer.json":
        (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match=message):
        locate(tmp_path)


def test_a_model_without_chat_template_is_refused(tmp_path: Path) -> None:
    complete(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(UserError, match="no chat template"):
        locate(tmp_path)


def test_a_missing_directory_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist") as caught:
        locate(tmp_path / "nowhere")
    assert "\n" not in str(caught.value)


def test_smollm2_points_to_its_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROADREACH_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    with pytest.raises(UserError, match=r"scripts/fetch_smollm2\.py"):
        locate("smollm2")
    assert locate("smollm2") if complete(tmp_path / "smollm2") else False


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def unreachable(*_: object, **__: object) -> str:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(UserError, match=r"owner/model.*Hub did not answer.*ConnectionError: no route") as caught:
        locate("owner/model")
    assert "\n" not in str(caught.value)


def test_a_hub_id_is_downloaded_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(complete(tmp_path)))
    assert module.locate("owner/model") == tmp_path
