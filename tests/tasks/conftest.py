"""Shared by the tests of the task room: the local data, and a Hub that is never asked over the network."""

from __future__ import annotations

import pytest

from broadreach.tasks.sources import data_dir


@pytest.fixture
def local_data() -> None:
    """Skip where the data files are absent."""
    directory = data_dir()
    if directory is None or not (directory / "gsm8k" / "test.jsonl").is_file():
        pytest.skip("the data files are absent (set BROADREACH_DATA)")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Hub client answers at once that it is offline."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
