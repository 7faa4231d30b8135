"""`broadreach verify FILE.jsonl --family FAMILY`: grade stored responses without a model."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from broadreach.types import Score, UserError

if TYPE_CHECKING:
    from broadreach.verify.grading import Item

CHUNK = 1024
"""Rows graded at a time: results are written in order, and memory stays bounded."""


def verify(
    file: Annotated[Path, typer.Argument(help="JSONL: rows with `response` and what the family needs.")],
    family: Annotated[str, typer.Option(help="boxed_math, choice, answer_tag, countdown, code or exact.")],
    out: Annotated[Path | None, typer.Option(help="Write the graded rows here instead of standard output.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Grading workers.")] = 2,
    deadline: Annotated[
        float | None,
        typer.Option(min=0.1, help="Seconds one verdict may take (default: 5; a program: 25, or its row's)."),
    ] = None,
    memory_gb: Annotated[float, typer.Option(min=0.1, help="Memory of one grading worker.")] = 2.0,
    allow_unsandboxed: Annotated[bool, typer.Option(help="Run programs even without bubblewrap.")] = False,
) -> None:
    """Grade stored responses: adds format_ok, correct, reward, extracted, key, error (and lenient_correct, timed_out).

    A row holds `response` and `gold`, or `numbers` and `target` (countdown), or `prompt_tests` (code). Order and other
    fields are kept. Rows go to --out or standard output, the summary to standard error.
    """
    from broadreach.tasks.sources import numbered_lines
    from broadreach.verify.families import family_named
    from broadreach.verify.pool import GradingPool
    from broadreach.verify.sandbox import find_sandbox

    family_named(family)
    if not file.is_file():
        raise UserError(f"{file} does not exist or is no file; give a JSONL file with one response a row")
    rows = numbered_lines(file)
    items = [_item(file, number, row, family) for number, row in rows]
    if family == "code":
        mode = find_sandbox(allow_unsandboxed).mode
        typer.echo(f"programs run {mode}", err=True)
        _say_inside(items)
    counts: Counter[str] = Counter()
    pool = GradingPool(
        workers=workers, deadline=deadline, memory=int(memory_gb * 1024**3), allow_unsandboxed=allow_unsandboxed
    )
    with _destination(out) as stream, pool:
        for start in range(0, len(rows), CHUNK):
            scores = pool.results([pool.submit(item) for item in items[start : start + CHUNK]])
            for (_, row), score in zip(rows[start : start + CHUNK], scores, strict=True):
                counts.update(_kinds(score))
                stream.write(_line({**row, **graded_fields(score)}))
            _progress(min(start + CHUNK, len(rows)), len(rows))
    _summary(file, len(rows), counts)


def graded_fields(score: Score) -> dict[str, Any]:
    """What grading adds to a stored row."""
    return {
        "format_ok": score.format_ok,
        "correct": score.correct,
        "reward": score.reward,
        "extracted": score.extracted,
        "key": score.answer_key,
        "error": score.error if score.error is not None or not score.timed_out else "timeout",
        "timed_out": score.timed_out,
        "lenient_correct": score.lenient_correct,
        **({} if score.f1 is None else {"f1": score.f1}),
    }


def _item(file: Path, number: int, row: dict[str, Any], family: str) -> Item:
    from broadreach.verify.grading import Item

    where = f"{file}: line {number}"
    response = row.get("response")
    if not isinstance(response, str):
        there = ", ".join(row) or "none"
        raise UserError(f"{where}: no text in `response` (columns there: {there})")
    nested = row.get("data")
    data = {**nested, **row} if isinstance(nested, dict) else row
    needed: tuple[tuple[str, ...], ...] = (("gold",),)
    if family == "countdown":
        needed = (("numbers", "nums"), ("target", "gold"))
    elif family == "code":
        needed = (("prompt_tests", "tests"),)
    tests: Any = next((data[name] for name in ("tests", "prompt_tests") if data.get(name)), [])
    if family == "code" and not (isinstance(tests, list) and all(isinstance(test, str) for test in tests)):
        raise UserError(f"{where}: prompt_tests must be a list of texts, one assert statement each")
    for names in needed:
        if all(data.get(name) is None for name in names):
            raise UserError(f"{where}: family {family} needs {' or '.join(names)} (columns there: {', '.join(row)})")
    gold = data.get("gold")
    if gold is None:
        gold = data.get("target", "")
    return Item(family, response, str(gold), data, row.get("finish_reason"))


def _say_inside(items: list[Item]) -> None:
    """Say how many rows have tests that only the candidate's own process can judge."""
    from broadreach.verify.code_tests import count_inside

    inside = sum(count_inside(item.data) > 0 for item in items)
    if inside:
        typer.echo(f"{inside} of {len(items)} rows have tests judged in-process: a program can fool them", err=True)


def _kinds(score: Score) -> list[str]:
    if score.timed_out:
        return ["timeout"]
    if score.error is not None:
        return ["error"]
    return ["correct" if score.correct else "wrong" if score.format_ok else "format failure"]


def _line(row: dict[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(row)
    return text + "\n"


@contextmanager
def _destination(out: Path | None) -> Iterator[TextIO]:
    """Standard output, or `out` written aside and renamed when everything is there."""
    if out is None:
        yield sys.stdout
        return
    aside = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        with aside.open("w", encoding="utf-8") as stream:
            yield stream
        aside.replace(out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        aside.unlink(missing_ok=True)


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\rgraded {done} of {total}", err=True, nl=done == total)


def _summary(file: Path, total: int, counts: Counter[str]) -> None:
    parts = [f"{counts[kind]} {kind}" for kind in ("correct", "wrong", "format failure")]
    apart = f"{counts['error']} errors, {counts['timeout']} timeouts"
    typer.echo(f"{file}: {total} responses: {', '.join(parts)}; apart from these {apart}", err=True)
