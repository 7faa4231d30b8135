"""Fixtures of the verifier tests: one pool for the session, and no silent skip of the sandbox in CI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from broadreach.verify import GradingPool

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def pool() -> Iterator[GradingPool]:
    with GradingPool(workers=2) as shared:
        yield shared


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The data sets of `shared/data`, or a skip that says how to get them."""
    folder = Path(os.environ.get("BROADREACH_DATA", ROOT / "../shared/data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets in {folder} (set BROADREACH_DATA)")
    return folder


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_bubblewrap") is None:
        return
    missing = [name for name in ("bwrap", "setpriv") if shutil.which(name) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"CI must install {' and '.join(missing)} (apt-get install bubblewrap util-linux)")
    if missing:
        pytest.skip(f"{' and '.join(missing)} missing (apt-get install bubblewrap util-linux)")
