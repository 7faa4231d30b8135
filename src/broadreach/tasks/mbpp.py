"""MBPP (Austin et al. 2021): short Python programs, judged by their asserts.

Source: google-research-datasets/mbpp, configs full (train 374, test 500, validation 90, prompt 10) and sanitized
(train 120, test 257, validation 43, prompt 7). Licence: CC BY 4.0. Local layout: mbpp/mbpp.jsonl (974 rows),
mbpp/sanitized-mbpp.json (427); the splits are ranges of task_id. 127 of the shared ids have other tests in the two
configurations, so the name says which one it is. Family: code.
The prompt holds no tests (method.md, section 3); `show_tests = n` adds the first n asserts.
"""

from __future__ import annotations

from collections.abc import Callable

from broadreach.tasks.dataset import DatasetTask, Split
from broadreach.tasks.instructions import MBPP
from broadreach.tasks.sources import Row, Source, Where, text_of
from broadreach.types import Problem

_SLOW = {123: {"cpu_seconds": 30, "wall_seconds": 90.0}}
"""Limits of tasks whose own reference program comes near the usual five seconds (4 s, 12 s on a loaded machine)."""
_IDS = {"train": (601, 974), "test": (11, 510), "validation": (511, 600), "prompt": (1, 10)}
_FULL_ROWS = {"train": 374, "test": 500, "validation": 90, "prompt": 10}
_SANITIZED_ROWS = {"train": 120, "test": 257, "validation": 43, "prompt": 7}


def mbpp(source: Where = "auto", show_tests: int = 0) -> DatasetTask:
    """MBPP, config full."""
    return _task("mbpp", "full", "mbpp/mbpp.jsonl", 974, _FULL_ROWS, source, show_tests)


def mbpp_sanitized(source: Where = "auto", show_tests: int = 0) -> DatasetTask:
    """MBPP, config sanitized (427 hand-checked tasks)."""
    return _task("mbpp-sanitized", "sanitized", "mbpp/sanitized-mbpp.json", 427, _SANITIZED_ROWS, source, show_tests)


def _task(
    name: str, config: str, local: str, local_rows: int, rows: dict[str, int], where: Where, show_tests: int
) -> DatasetTask:
    splits = {
        split: Split(
            Source(
                rows=rows[split],
                hub="google-research-datasets/mbpp",
                config=config,
                split=split,
                local=local,
                local_rows=local_rows,
                keep=_in_range(*_IDS[split]),
            ),
            lambda index, row: _convert(row, show_tests),
        )
        for split in _IDS
    }
    return DatasetTask(
        name=name,
        family="code",
        splits=splits,
        instruction=MBPP,
        licence="CC BY 4.0",
        where=where,
    )


def _in_range(first: int, last: int) -> Callable[[Row], bool]:
    return lambda row: first <= int(row["task_id"]) <= last


def _convert(row: Row, show_tests: int) -> Problem:
    text = text_of(row, "text") or text_of(row, "prompt")
    tests = [test.replace("\r\n", "\n") for test in row["test_list"]]
    if show_tests > 0:
        text += "\n\nYour code must pass these tests:\n\n" + "\n".join(tests[:show_tests])
    data = {
        "prompt_tests": tests,
        "setup": text_of(row, "test_setup_code").replace("\r\n", "\n"),
        "imports": list(row.get("test_imports") or []),
        "challenge_tests": list(row.get("challenge_test_list") or []),
        **_SLOW.get(int(row["task_id"]), {}),
    }
    return Problem(str(row["task_id"]), text, text_of(row, "code").replace("\r\n", "\n"), data)
