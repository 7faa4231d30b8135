"""The sample store: one JSONL row a response, resumable, byte for byte the same however often it was killed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, Any, cast

import xxhash

from broadreach.runs.files import lock_or_refuse, write_atomically
from broadreach.types import FinishReason, Problem, Response, Score, UserError

VERSION = 1


@dataclass(frozen=True, slots=True)
class StoreHeader:
    """What fixes the content of a store; it is the first row, and resuming with another one is refused."""

    task: str
    split: str
    model_digest: str
    """Digest of the weights the responses were drawn from."""
    instruction_hash: str
    """Hash of the instruction, the worked examples and the chat template: of how a problem becomes a prompt."""
    temperature: float
    """0 is greedy: then `samples` is 1."""
    max_new_tokens: int
    samples: int
    """Responses per problem."""
    seed: int
    """Of the sampling noise."""
    problems: int
    problem_digest: str
    """`problem_digest(problems)`: ids, questions and golds in order."""
    dtype: str = "float32"
    """Type of the served weights."""
    private: bool = False
    """The task's terms forbid publishing items: questions are not stored, and reports show no text."""
    noise_sigma: float = 0.0
    """Response j comes from the weights plus this much times direction j of (seed, update 0); 0: from the weights."""

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise UserError(f"samples = {self.samples}: draw at least one response per problem")
        if self.temperature == 0 and self.samples > 1 and self.noise_sigma == 0:
            raise UserError(
                f"samples = {self.samples} at temperature 0: greedy responses are all the same; "
                "set samples to 1, or a temperature above 0"
            )


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One response with its verdict, as stored; the field order is the order in the file."""

    problem: str
    sample: int
    text: str
    tokens: tuple[int, ...]
    finish_reason: FinishReason
    prompt_tokens: int
    extracted: str | None
    answer_key: str | None
    correct: bool
    format_ok: bool
    lenient_correct: bool | None
    reward: float
    error: str | None
    timed_out: bool
    f1: float | None = None
    """Token F1 (family answer_tag); rows of other families do not hold it."""


ROW_FIELDS = tuple(field.name for field in fields(SampleRow))


def problem_digest(problems: Sequence[Problem]) -> str:
    """xxh3-128 over ids, questions and golds in order: two stores with one digest hold the same problems."""
    state = xxhash.xxh3_128()
    for problem in problems:
        state.update(json.dumps([problem.id, problem.question, problem.gold]).encode() + b"\n")
    return state.hexdigest()


def sample_row(problem_id: str, sample: int, response: Response, score: Score) -> SampleRow:
    """Join a response and its verdict into the row that is stored."""
    verdict = asdict(score)
    return SampleRow(
        problem=problem_id,
        sample=sample,
        text=response.text,
        tokens=response.tokens,
        finish_reason=response.finish_reason,
        prompt_tokens=response.prompt_tokens,
        **verdict,
    )


class SampleStore:
    """Append-only store of whole problems in canonical order (problem, then sample); use it in a `with` block.

    Entering locks the file, drops what a kill left unfinished, and refuses a store of other settings or with a
    broken row (UserError). `done` problems of `problem_ids` are stored already. Reading needs no lock:
    `read_header`, `read_rows`, and `broadreach.evaluation.table.load`.
    """

    def __init__(self, path: str | Path, header: StoreHeader, problem_ids: Sequence[str]) -> None:
        self.path = Path(path)
        self.header = header
        self.problem_ids = tuple(problem_ids)
        self.done = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> SampleStore:
        assert len(self.problem_ids) == self.header.problems, "the header counts other problems"
        if len(set(self.problem_ids)) != len(self.problem_ids):
            raise UserError(f"{self.path}: a problem id occurs twice in the task; ids must be unique")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b", buffering=0)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written ({error.strerror}); choose another folder") from None
        try:
            lock_or_refuse(self._file, self.path)
            self._recover(self._file)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, problem_id: str, responses: Sequence[Response], scores: Sequence[Score]) -> None:
        """Store the next problem whole: its `samples` responses and verdicts, flushed and synced."""
        assert problem_id == self.problem_ids[self.done], "problems are stored in order"
        assert len(responses) == len(scores) == self.header.samples, "every problem has the same number of responses"
        pairs = enumerate(zip(responses, scores, strict=True))
        self._write(b"".join(_line(_plain(sample_row(problem_id, i, r, s))) for i, (r, s) in pairs))
        self.done += 1

    def _write(self, block: bytes) -> None:
        assert self._file is not None, "the store is used inside a with block"
        size = os.fstat(self._file.fileno()).st_size
        try:
            view = memoryview(block)
            while view:
                view = view[self._file.write(view) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), size)
            raise UserError(
                f"{self.path}: writing failed ({error.strerror}); free space and run the same command again, "
                f"it continues after {self.done} of {self.header.problems} problems"
            ) from None

    def _recover(self, file: IO[bytes]) -> None:
        """Keep the header and the whole problems, truncate the rest (what a kill left), count what is done."""
        first = _header_line(self.header)
        read, keep, self.done, rows = 0, 0, 0, 0
        for number, line in enumerate(_lines(self.path), start=1):
            read += len(line)
            if number == 1:
                _refuse_other_settings(self.path, _parse_header(line, self.path), self.header)
                keep = read
                continue
            self._check_place(_parse_row(line, self.path, number), rows, number)
            rows += 1
            if rows % self.header.samples == 0:
                keep, self.done = read, rows // self.header.samples
        if keep == 0 and not first.startswith(self.path.read_bytes()):
            raise UserError(f"{self.path}, line 1: not the header of a sample store; choose another folder")
        os.ftruncate(file.fileno(), keep)
        if keep == 0:
            self._write(first)

    def _check_place(self, row: SampleRow, rows: int, number: int) -> None:
        problem, sample = divmod(rows, self.header.samples)
        wanted = self.problem_ids[problem] if problem < len(self.problem_ids) else "(the end)"
        if (row.problem, row.sample) != (wanted, sample):
            raise UserError(
                f"{self.path}, line {number}: holds {row.problem} sample {row.sample} where {wanted} sample {sample} "
                "belongs: the store was edited; delete it and sample again"
            )


def write_problems(store: str | Path, problems: Sequence[Problem]) -> Path:
    """Write problems.jsonl beside a store (id, question, gold), so that reports can show what was asked."""
    path = Path(store).with_name("problems.jsonl")
    rows = [{"id": problem.id, "question": problem.question, "gold": problem.gold} for problem in problems]
    write_atomically(path, b"".join(map(_line, rows)).decode())
    return path


def read_problems(store: str | Path) -> dict[str, dict[str, str]]:
    """Problem id -> {"question", "gold"} from problems.jsonl beside a store; empty where there is none."""
    path = Path(store).with_name("problems.jsonl")
    if not path.exists():
        return {}
    rows = [_parse(line, path, number) for number, line in enumerate(_lines(path), start=1)]
    return {row["id"]: {"question": row["question"], "gold": row["gold"]} for row in rows}


def read_header(path: str | Path) -> StoreHeader:
    """The settings of a store; UserError when there is none, or its first row is no header."""
    for line in _lines(path):
        return _parse_header(line, path)
    raise UserError(f"{path}: no sample store (the file is empty); run `broadreach eval` again")


def read_rows(path: str | Path) -> Iterator[SampleRow]:
    """The stored responses in order, one at a time; a torn last line is left out; UserError names a broken row."""
    for number, line in enumerate(_lines(path), start=1):
        if number == 1:
            _parse_header(line, path)
        else:
            yield _parse_row(line, path, number)


def differing_keys(a: StoreHeader, b: StoreHeader, allowed: Sequence[str] = ()) -> list[str]:
    """`key: value of a, value of b` for every setting that differs and is not in `allowed`."""
    first, second = asdict(a), asdict(b)
    return [f"{k}: {first[k]!r}, {second[k]!r}" for k in first if first[k] != second[k] and k not in allowed]


def _refuse_other_settings(path: Path, stored: StoreHeader, wanted: StoreHeader) -> None:
    changes = differing_keys(stored, wanted)
    if changes:
        raise UserError(
            f"{path} holds responses of other settings (stored, asked for): {'; '.join(changes)}; "
            "delete it, choose another folder, or ask for the stored settings"
        )


def _lines(path: str | Path) -> Iterator[bytes]:
    """Every whole line; a last line without its newline, what a kill leaves, is left out."""
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line
    except OSError as error:
        raise UserError(f"{path}: no sample store ({error.strerror}); run `broadreach eval` first") from None


def _header_line(header: StoreHeader) -> bytes:
    """The first row; without weight noise it has the keys, and so the bytes, of stores made before there was any."""
    values = {"version": VERSION, **asdict(header)}
    if header.noise_sigma == 0:
        del values["noise_sigma"]
    return _line(values)


def _plain(row: SampleRow) -> dict[str, Any]:
    """`asdict` without its copy of every token."""
    return {name: getattr(row, name) for name in ROW_FIELDS if name != "f1" or row.f1 is not None}


def _line(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _parse_header(line: bytes, path: str | Path) -> StoreHeader:
    values = _parse(line, path, 1)
    if values.pop("version", None) == VERSION:
        try:
            return StoreHeader(**values)
        except TypeError:
            pass
    raise UserError(f"{path}, line 1: not the header of a version {VERSION} sample store; delete it and sample again")


def _parse_row(line: bytes, path: str | Path, number: int) -> SampleRow:
    values = _parse(line, path, number)
    if {*values, "f1"} != set(ROW_FIELDS):
        raise UserError(f"{path}, line {number}: not a row of a sample store; delete the store and sample again")
    return SampleRow(**{**values, "tokens": tuple(values["tokens"])})


def _parse(line: bytes, path: str | Path, number: int) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise UserError(f"{path}, line {number}: not a JSON object; delete the store and sample again")
    return cast(dict[str, Any], values)
