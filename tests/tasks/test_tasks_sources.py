"""Where rows come from: local files, the Hub, their row counts, and what is said when something is missing."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broadreach.config import TaskSettings
from broadreach.tasks import sources
from broadreach.tasks.registry import get_task
from broadreach.tasks.sources import Source, read, read_file, text_of
from broadreach.types import UserError

Write = Callable[[str, list[dict[str, Any]]], Path]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """An empty data directory, and a function that writes a JSONL file into it."""
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def _gsm8k_rows(count: int) -> list[dict[str, Any]]:
    return [{"question": f"What is {i} + 1?", "answer": f"It is {i + 1}.\n#### {i + 1:,}"} for i in range(count)]


def test_another_row_count_is_refused_with_both_numbers(data: Write) -> None:
    data("gsm8k/test.jsonl", _gsm8k_rows(1318))
    with pytest.raises(UserError, match=r"gsm8k/test.jsonl: 1318 rows instead of 1319"):
        get_task(TaskSettings(name="gsm8k")).problems("test")


def test_the_right_row_count_loads_and_commas_leave_the_gold(data: Write) -> None:
    data("gsm8k/test.jsonl", _gsm8k_rows(1319))
    problems = get_task(TaskSettings(name="gsm8k")).problems("test")
    assert len(problems) == 1319
    assert problems[1100].gold == "1101"


def test_a_damaged_line_is_named(data: Write) -> None:
    path = data("gsm8k/test.jsonl", _gsm8k_rows(3))
    path.write_text(path.read_text() + '{"question": "cut o\n')
    with pytest.raises(UserError, match=r"gsm8k/test.jsonl: line 4 is not valid JSON"):
        get_task(TaskSettings(name="gsm8k")).problems("test")


@pytest.mark.usefixtures("data", "offline")
@pytest.mark.parametrize(
    ("name", "hub"), [("gsm8k", "openai/gsm8k"), ("svamp", "ChilleD/SVAMP"), ("aime25", "math-ai/aime25")]
)
def test_missing_data_say_which_file_and_which_hub_id(name: str, hub: str) -> None:
    with pytest.raises(UserError) as caught:
        get_task(TaskSettings(name=name)).problems("test")
    assert hub in str(caught.value)
    assert "BROADREACH_DATA" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("data", "offline")
def test_gated_data_without_a_network_say_that_the_network_is_missing() -> None:
    with pytest.raises(UserError, match=r"could not be loaded: no network.*HF_HUB_OFFLINE is set.*it is gated"):
        get_task(TaskSettings(name="gpqa")).problems("test")


def test_gated_data_without_access_say_where_to_ask() -> None:
    """The library's own words for a gated data set, with and without a login, and for one that is hidden."""
    exceptions = pytest.importorskip("datasets.exceptions")
    gated = Source(rows=198, hub="Idavidrein/gpqa", config="gpqa_diamond", gated=True)
    for words in (
        "Dataset 'Idavidrein/gpqa' is a gated dataset on the Hub. You must be authenticated to access it.",
        "Dataset 'Idavidrein/gpqa' doesn't exist on the Hub or cannot be accessed.",
    ):
        text = sources._explain(gated, exceptions.DatasetNotFoundError(words), None)
        assert "is gated: accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa" in text
    assert "gated: accept" not in sources._explain(gated, ValueError("Unknown split 'nope'"), None)
    assert "could not be loaded" in sources._explain(gated, ValueError("Unknown split 'nope'"), None)


@pytest.mark.usefixtures("data")
def test_a_hub_that_does_not_answer_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port of this machine stands for the Hub: the client alone retries for half a minute."""
    pytest.importorskip("datasets")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    started = time.monotonic()
    with pytest.raises(UserError, match=r"openai/gsm8k.*no network.*http://127.0.0.1:9 does not answer"):
        get_task(TaskSettings(name="gsm8k")).problems("test")
    assert time.monotonic() - started < 15
    assert constants.HF_HUB_OFFLINE is False


@pytest.mark.usefixtures("data")
def test_local_only_says_which_file_is_wanted() -> None:
    with pytest.raises(UserError, match=r"math500/test.jsonl not found; set BROADREACH_DATA"):
        get_task(TaskSettings(name="math500", options={"source": "local"})).problems("test")
    with pytest.raises(UserError, match="choose auto, local or hub"):
        get_task(TaskSettings(name="math500", options={"source": "disk"})).problems("test")


def test_a_data_directory_that_is_none_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"BROADREACH_DATA=.*nowhere is not a directory"):
        sources.data_dir()


def test_a_local_data_set_stands_in_for_the_hub(tmp_path: Path) -> None:
    """`datasets` reads a directory as it reads a Hub repository: the real code path, without a network."""
    pytest.importorskip("datasets")
    (tmp_path / "test.jsonl").write_text("".join(json.dumps({"n": i}) + "\n" for i in range(4)))
    rows, origin = read(Source(rows=4, hub=str(tmp_path), split="test"), "hub")
    assert [row["n"] for row in rows] == [0, 1, 2, 3]
    assert origin == f"hub:{tmp_path}"
    streamed, _ = read(Source(rows=4, hub=str(tmp_path), split="test", gated=True), "hub")
    assert streamed == rows
    with pytest.raises(UserError, match="4 rows instead of 5"):
        read(Source(rows=5, hub=str(tmp_path), split="test"), "hub")
    with pytest.raises(UserError, match="could not be loaded"):
        read(Source(rows=5, hub=str(tmp_path), split="nope"), "hub")


def test_every_file_kind_is_read_and_damage_is_one_line(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": "é"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "t.parquet")
    (tmp_path / "t.json").write_text(json.dumps(rows))
    (tmp_path / "t.jsonl").write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["a", "b"])
        writer.writeheader()
        writer.writerows(rows)
    for suffix in ("parquet", "json", "jsonl"):
        assert read_file(tmp_path / f"t.{suffix}") == rows
    assert read_file(tmp_path / "t.csv") == [{"a": "1", "b": "x"}, {"a": "2", "b": "é"}]
    for name, content in (
        ("d.parquet", "no"),
        ("d.json", "[1"),
        ("e.json", "{}"),
        ("d.jsonl", "[1]\n"),
        ("none.json", None),
    ):
        if content is not None:
            (tmp_path / name).write_text(content)
        with pytest.raises(UserError, match=name) as caught:
            read_file(tmp_path / name)
        assert "\n" not in str(caught.value)
    (tmp_path / "latin.jsonl").write_bytes('{"a": "é"}\n'.encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8"):
        read_file(tmp_path / "latin.jsonl")


def test_numbers_as_text() -> None:
    row = {"whole": 27.0, "half": 0.5, "none": None, "int": 3, "negative": -1.0}
    assert [text_of(row, name) for name in (*row, "absent")] == ["27", "0.5", "", "3", "-1", ""]


def _gpqa(path: Path, rows: int) -> None:
    columns = ["Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            [f"Invented question {i}?", f"right {i}", f"w1 {i}", f"w2 {i}", f"w3 {i}"] for i in range(rows)
        )


def test_gpqa_options_keep_their_order_whatever_else_is_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))
    _gpqa(tmp_path / "gpqa/gpqa_diamond.csv", 198)
    task = get_task(TaskSettings(name="gpqa"))
    problems = {problem.question: problem for problem in task.problems("test")}
    assert len(problems) == 198
    assert {problem.gold for problem in problems.values()} == set("ABCD")
    for problem in problems.values():
        assert problem.data["options"][problem.gold].startswith("right")
        assert "Invented" not in problem.id
    lines = (tmp_path / "gpqa/gpqa_diamond.csv").read_text().splitlines()
    (tmp_path / "gpqa/gpqa_diamond.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]))
    again = get_task(TaskSettings(name="gpqa")).problems("test")
    assert all(problems[problem.question] == problem for problem in again)


def test_hub_and_local_layouts_give_the_same_problem() -> None:
    """The Hub's columns differ from the local files' for some data sets."""
    from broadreach.tasks import commonsense_qa, competition, countdown

    ai2 = {
        "id": "1",
        "answerKey": "B",
        "question": {"stem": "Why?", "choices": [{"label": "A", "text": "x"}, {"label": "B", "text": "y"}]},
    }
    hub = {"id": "1", "answerKey": "B", "question": "Why?", "choices": {"label": ["A", "B"], "text": ["x", "y"]}}
    assert commonsense_qa._convert(0, ai2) == commonsense_qa._convert(0, hub)
    local = competition._convert(0, {"problem": "P", "answer": "204"})
    assert local == competition._convert(0, {"problem": "P", "solution": r"\boxed{204}"})
    assert local == competition._convert(0, {"question": "P", "answer": 204.0})
    own = {
        "nums": [1, 2],
        "target": 3,
        "prompt": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
    }
    problem = countdown._convert("test", 0, own)
    assert countdown._ask(problem) == own["prompt"]
    assert countdown._ask(problem) is not problem.data["messages"]
