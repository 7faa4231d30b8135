"""`broadreach tasks list | show | check` and `broadreach verify`, as plain Typer commands."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from broadreach.commands.tasks import app
from broadreach.commands.verify import verify
from broadreach.models.locate import locate
from broadreach.types import UserError

CASES = Path(__file__).parents[3] / "shared" / "cases" / "handed"
runner = CliRunner()
verify_app = typer.Typer()
verify_app.command()(verify)


def _run(*arguments: str) -> Result:
    return runner.invoke(app, list(arguments))


def _verify(*arguments: str | Path) -> Result:
    return runner.invoke(verify_app, [str(argument) for argument in arguments])


def _error(result: Result) -> str:
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


def test_list_names_every_task() -> None:
    result = _run("list")
    assert result.exit_code == 0
    assert {"gsm8k", "mbpp-sanitized", "nano-chain", "jsonl"} <= {
        line.split()[0] for line in result.output.splitlines()
    }


@pytest.mark.usefixtures("local_data")
def test_show_prints_prompts_golds_and_graded_examples() -> None:
    result = _run("show", "svamp", "--n", "2", "--shots", "1")
    assert result.exit_code == 0
    assert result.output.count("--- gold: ") == 2
    assert "[assistant] 58 - 35 = 23" in result.output
    for reward in ("reward 1 ", "reward 0.1", "reward 0 "):
        assert reward in result.output
    assert "task countdown: variant = 'x'" in _error(_run("show", "countdown", "--set", "variant=x"))
    assert "write it as name=value" in _error(_run("show", "countdown", "--set", "variant"))


def test_show_renders_with_a_model_template() -> None:
    try:
        locate("nano")
    except UserError as error:
        pytest.skip(str(error))
    result = _run("show", "nano-chain", "--n", "1", "--model", "nano")
    assert result.exit_code == 0, result.output
    assert "--- gold: " in result.output


def test_show_keeps_gated_items_to_ids_and_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import csv

    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))
    (tmp_path / "gpqa").mkdir()
    with (tmp_path / "gpqa" / "gpqa_diamond.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"]
        )
        writer.writerows([[f"Secret {i}?", "Secret right", "Secret a", "Secret b", "Secret c"] for i in range(198)])
    shown = _run("show", "gpqa")
    checked = _run("check", "gpqa")
    assert (shown.exit_code, checked.exit_code) == (0, 0)
    assert "gpqa-" in shown.output
    assert "198 of 198 golds score 1" in checked.output
    assert "Secret" not in shown.output + checked.output


@pytest.mark.usefixtures("local_data")
def test_check_reports_verdicts_and_hygiene_and_fails_by_exit_code(tmp_path: Path) -> None:
    result = _run("check", "svamp")
    assert result.exit_code == 0
    assert "svamp test: ok, 300 of 300 golds score 1, 1600 of 1600 near misses refused" in result.output
    assert "700 of 700 training problems kept" in result.output
    path = tmp_path / "bad.jsonl"
    path.write_text('{"prompt": "p", "numbers": [1, 1], "target": 7}\n')
    options = ["--set", f"path={path}", "--set", "family=countdown", "--set", "test_fraction=0", "--split", "train"]
    result = _run("check", "jsonl", *options)
    assert result.exit_code == 1
    assert "FAILED, 0 of 1 golds score 1" in result.output


@pytest.mark.slow
def test_check_all_skips_what_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))
    result = _run("check", "all")
    assert result.exit_code == 0, result.output
    assert "gsm8k: skipped, no data here" in result.output
    assert "nano-chain test: ok" in result.output


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("math", "boxed_math"),
        ("choice", "choice"),
        ("answer_tag", "answer_tag"),
        ("countdown", "countdown"),
        pytest.param("code", "code", marks=[pytest.mark.slow, pytest.mark.needs_bubblewrap]),
    ],
)
def test_verify_grades_the_handed_cases(name: str, family: str, tmp_path: Path) -> None:
    if not CASES.is_dir():
        pytest.skip("the handed cases are absent")
    out = tmp_path / "graded.jsonl"
    result = _verify(CASES / f"{name}.jsonl", "--family", family, "--out", out)
    assert result.exit_code == 0, result.output
    before, after = _rows(CASES / f"{name}.jsonl"), _rows(out)
    assert [row["id"] for row in after] == [row["id"] for row in before]
    added = {"format_ok", "correct", "reward", "extracted", "key", "error", "timed_out", "lenient_correct", "f1"}
    for old, new in zip(before, after, strict=True):
        assert {key: value for key, value in new.items() if key not in added} == old
        assert (new["format_ok"], new["correct"]) == (old["expected"]["format_ok"], old["expected"]["correct"]), old
        assert new["reward"] == (1 if new["correct"] else 0.1 if new["format_ok"] else 0)
    assert [path.name for path in tmp_path.iterdir()] == ["graded.jsonl"]


def test_verify_writes_rows_to_standard_output_and_the_summary_to_standard_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [
        {"response": "\\boxed{1}", "gold": 1, "é": "x"},
        {"response": "1", "gold": 1},
        {"response": "\\boxed{2}", "gold": "1"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = _verify(path, "--family", "boxed_math")
    graded = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["reward"] for row in graded] == [1, 0, 0.1]
    assert [row["lenient_correct"] for row in graded] == [True, True, False]
    assert "3 responses: 1 correct, 1 wrong, 1 format failure; apart from these 0 errors, 0 timeouts" in result.stderr


def test_verify_can_rewrite_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"response": "\\boxed{1}", "gold": "1", "odd": "\ud800"}) + "\n")
    assert _verify(path, "--family", "boxed_math", "--out", path).exit_code == 0
    once = _rows(path)
    assert once[0]["correct"] is True
    assert once[0]["odd"] == "\ud800"


@pytest.mark.parametrize(
    ("row", "family", "message"),
    [
        ({"gold": "1"}, "boxed_math", r"line 1: no text in `response` \(columns there: gold\)"),
        ({"response": 3, "gold": "1"}, "boxed_math", "no text in `response`"),
        ({"response": "x"}, "boxed_math", r"family boxed_math needs gold \(columns there: response\)"),
        ({"response": "x", "target": 3}, "countdown", "family countdown needs numbers or nums"),
        ({"response": "x", "numbers": [3]}, "countdown", "needs target or gold"),
        ({"response": "x"}, "code", "needs prompt_tests or tests"),
        ({"response": "x", "prompt_tests": "assert f()"}, "code", "prompt_tests must be a list of texts"),
        ({"response": "x", "gold": "1"}, "maths", "unknown answer family 'maths'; choose one of"),
    ],
)
def test_verify_names_what_a_row_lacks(row: dict[str, Any], family: str, message: str, tmp_path: Path) -> None:
    import re

    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert re.search(message, _error(_verify(path, "--family", family)))


@pytest.mark.usefixtures("offline")
def test_check_says_that_the_training_problems_were_not_compared(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BROADREACH_DATA", str(tmp_path))
    (tmp_path / "hotpotqa").mkdir()
    row = {"question": "Q?", "answer": "yes", "context": {"title": ["T"], "sentences": [["S."]]}}
    rows = [json.dumps({"id": str(number), **row}) for number in range(100)]
    (tmp_path / "hotpotqa" / "hotpot_distractor_sample100.jsonl").write_text("\n".join(rows))
    result = _run("check", "hotpotqa")
    assert result.exit_code == 0, result.output
    assert "hotpotqa test: ok" in result.output
    assert "training problems not compared with the tests: Hub data set hotpotqa/hotpot_qa" in result.output


@pytest.mark.needs_bubblewrap
def test_verify_of_code_keeps_its_deadline_and_says_which_rows_trust_the_program(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [
        {"response": "```python\nwhile True: pass\n```", "prompt_tests": ["assert f(1) == 1"]},
        {"response": "```python\ndef f(x): return x\n```", "prompt_tests": ["assert f(1) == 1 or f(2) == 2"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    started = time.monotonic()
    result = _verify(path, "--family", "code", "--deadline", "1")
    assert time.monotonic() - started < 6
    assert [json.loads(line)["timed_out"] for line in result.stdout.splitlines()] == [True, False]
    assert "1 of 2 rows have tests judged in-process" in result.stderr


def test_verify_writes_the_f1_of_answer_tags_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    rows = [
        {"response": "<answer>the old mill</answer>", "gold": "Old Mill Street"},
        {"response": "old mill street", "gold": "Old Mill Street"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    graded = [json.loads(line) for line in _verify(path, "--family", "answer_tag").stdout.splitlines()]
    assert [row["correct"] for row in graded] == [False, False]
    assert [row["f1"] for row in graded] == [pytest.approx(0.8), 0.0]
    assert "f1" not in json.loads(_verify(path, "--family", "exact").stdout.splitlines()[0])


def test_verify_needs_a_file_and_a_place_to_write(tmp_path: Path) -> None:
    assert "does not exist or is no file" in _error(_verify(tmp_path / "none.jsonl", "--family", "exact"))
    path = tmp_path / "r.jsonl"
    path.write_text('{"response": "a", "gold": "a"}\n{"response": "a", \n')
    assert "line 2 is not valid JSON" in _error(_verify(path, "--family", "exact"))
    path.write_text('{"response": "a", "gold": "a"}\n')
    assert "cannot be written" in _error(_verify(path, "--family", "exact", "--out", tmp_path / "no" / "o.jsonl"))


def test_the_commands_import_nothing_heavy() -> None:
    code = (
        "import sys; import broadreach.commands.tasks, broadreach.commands.verify;"
        "ours = {m for m in sys.modules if m.startswith('broadreach.')};"
        "mine = {'broadreach.' + name for name in ('commands', 'commands.tasks', 'commands.verify', 'types')};"
        "assert ours <= mine, ours - mine"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
