"""OlympiadBench (He et al. 2024): olympiad mathematics in English with open answers, 675 problems.

Source: Hothan/OlympiadBench, config OE_TO_maths_en_COMP (Hub split train, here `test`; 674 or 675 rows). Licence: MIT.
Local layout: olympiadbench/test.jsonl. Family: boxed_math; 94 problems have several answers (any order), 8 a unit,
1 an absolute tolerance.
"""

from __future__ import annotations

from typing import Any

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MATH
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem


def olympiadbench(source: Where = "auto") -> DatasetTask:
    """OlympiadBench, open-ended English mathematics without images."""
    rows = Source(
        rows=(674, 675),
        hub="Hothan/OlympiadBench",
        config="OE_TO_maths_en_COMP",
        split="train",
        local="olympiadbench/test.jsonl",
        local_rows=675,
    )
    return DatasetTask(
        name="olympiadbench",
        family="boxed_math",
        splits={"test": Split(rows, _convert)},
        instruction=MATH,
        licence="MIT",
        where=source,
    )


def _convert(index: int, row: Row) -> Problem:
    golds = row.get("final_answer") or [""]
    gold = ", ".join(str(part) for part in golds)
    data: dict[str, Any] = {"answer_type": row.get("answer_type")}
    if row.get("is_multiple_answer"):
        data |= {"multiple": True, "ordered": False, "thousands": False}
    if row.get("unit"):
        data["unit"] = row["unit"]
    if row.get("error"):
        data["float_abs_tol"] = float(row["error"])
    return Problem(text_of(row, "id"), text_of(row, "question"), gold, data)
