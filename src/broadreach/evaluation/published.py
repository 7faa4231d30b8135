"""The paper's published tables (arXiv 2608.27351), as text rows: report/published/*.csv, readable from any room."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files

FOLDER = files("broadreach").joinpath("report", "published")


@lru_cache(maxsize=16)
def published_rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of one table, such as "drift.csv": column -> text as printed."""
    with FOLDER.joinpath(name).open(encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
