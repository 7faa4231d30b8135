"""The paper's published tables (arXiv 2608.27351), as text rows: paper/*.csv beside this file."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "paper"


@lru_cache(maxsize=16)
def published_rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of one table, such as "drift.csv": column -> text as printed."""
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
