"""The sample store: killed anywhere and resumed it ends byte for byte the same; other settings are refused."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broadreach.evaluation.sample import sample
from broadreach.evaluation.store import SampleStore, StoreHeader, problem_digest, read_header, read_problems, read_rows
from broadreach.evaluation.table import load
from broadreach.types import Member, Perturbation, Problem, Request, Response, Sampling, Score, UserError

PROBLEMS = [Problem(f"p{i}", f"{i} + {i} = ?", str(2 * i)) for i in range(11)]
PROMPTS = {problem.id: (1, 2, 3) for problem in PROBLEMS}


class KeyedEngine:
    """Answers by request alone, as the Engine promises; counts calls and can stop in the middle."""

    def __init__(self, calls_before_kill: int | None = None) -> None:
        self.calls_before_kill = calls_before_kill
        self.batches: list[tuple[str, ...]] = []

    def generate(
        self,
        requests: Sequence[Request],
        members: Sequence[Member],
        perturbation: Perturbation,
        sampling: Sampling,
        progress: Any = None,
        deliver: Any = None,
    ) -> list[list[Response]]:
        assert [member.sign for member in members] == [0]
        if self.calls_before_kill == len(self.batches):
            raise KeyboardInterrupt
        self.batches.append(tuple(dict.fromkeys(request.problem_id for request in requests)))
        return [[_answer(request, sampling) for request in requests]]


def _answer(request: Request, sampling: Sampling) -> Response:
    number = int(request.problem_id[1:])
    guess = 2 * number if (number + request.sample + sampling.seed) % 3 == 0 else request.sample
    reason = "length" if request.sample == 1 else "stop"
    return Response(f"line\n{guess} ü\u2028\ud800", tuple(range(guess % 5 + 1)), reason, len(request.prompt))


class ExactGrader:
    def submit(self, problem: Problem, response: Response) -> Score:
        guess = response.text.split()[1]
        right = guess == problem.gold
        return Score(float(right), right, True, guess, guess, None, "timeout" if guess == "3" else None, guess == "3")

    def results(self, handles: Sequence[Score]) -> list[Score]:
        return list(handles)


def header(**changes: Any) -> StoreHeader:
    made = StoreHeader("toy", "test", "d0", "i0", 0.6, 16, 4, 1, len(PROBLEMS), problem_digest(PROBLEMS))
    return replace(made, **changes)


def draw(path: Path, engine: KeyedEngine | None = None, settings: StoreHeader | None = None, chunk: int = 3) -> bytes:
    with SampleStore(path, settings or header(), [problem.id for problem in PROBLEMS]) as store:
        sample(engine or KeyedEngine(), ExactGrader(), store, PROBLEMS, PROMPTS, chunk=chunk)  # type: ignore[arg-type]
    return path.read_bytes()


def test_killed_at_any_byte_and_resumed_the_store_is_the_same(tmp_path: Path) -> None:
    whole = draw(tmp_path / "whole.jsonl")
    cuts = np.random.default_rng(0).integers(0, len(whole), 60)
    for cut in [0, 1, len(whole) - 1, len(whole), *cuts]:
        torn = tmp_path / "torn.jsonl"
        torn.write_bytes(whole[:cut])
        assert draw(torn) == whole


def test_the_store_does_not_depend_on_the_chunks(tmp_path: Path) -> None:
    whole = draw(tmp_path / "a.jsonl", chunk=3)
    assert draw(tmp_path / "b.jsonl", chunk=1) == whole == draw(tmp_path / "c.jsonl", chunk=100)


def test_a_resumed_run_generates_the_batches_of_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed, killed, resumed = KeyedEngine(), KeyedEngine(calls_before_kill=3), KeyedEngine()
    whole = draw(tmp_path / "whole.jsonl", undisturbed)
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path / "torn.jsonl", killed)
    assert 0 < len(load(tmp_path / "torn.jsonl").problem_ids) < len(PROBLEMS)
    assert draw(tmp_path / "torn.jsonl", resumed) == whole
    assert len(resumed.batches) < len(undisturbed.batches)
    assert set(resumed.batches) <= set(undisturbed.batches)


def test_a_finished_store_asks_nothing_of_the_engine(tmp_path: Path) -> None:
    whole = draw(tmp_path / "s.jsonl")
    assert draw(tmp_path / "s.jsonl", KeyedEngine(calls_before_kill=0)) == whole


def test_rows_come_back_as_they_were_drawn(tmp_path: Path) -> None:
    draw(tmp_path / "s.jsonl")
    rows = list(read_rows(tmp_path / "s.jsonl"))
    assert len(rows) == 44 and read_header(tmp_path / "s.jsonl") == header()
    request = Request("p0", (1, 2, 3), 3)
    response = _answer(request, Sampling(0.6, 16, seed=1))
    row = rows[3]
    assert (row.problem, row.sample, row.text, row.tokens) == ("p0", 3, response.text, response.tokens)
    assert (row.error, row.timed_out, row.answer_key, row.correct) == ("timeout", True, "3", False)


def test_the_table_holds_every_verdict(tmp_path: Path) -> None:
    draw(tmp_path / "s.jsonl")
    table = load(tmp_path / "s.jsonl")
    assert table.complete and table.correct.shape == (11, 4)
    assert table.correct[2].tolist() == [True, False, False, True]
    assert table.keys[2] == ("4", "1", "2", "4")
    assert table.truncated[:, 1].all() and table.truncated.sum() == 11
    assert np.array_equal(table.lenient, table.correct) and table.format_ok.all()
    assert np.array_equal(table.error, table.timed_out) and table.error.any()
    assert np.array_equal(table.reward, table.correct) and table.prompt_tokens.tolist() == [3] * 11
    assert table.tokens[2].tolist() == [5, 2, 3, 5]


@pytest.mark.parametrize("change", [{"temperature": 0.7}, {"seed": 2, "samples": 5}, {"model_digest": "d1"}])
def test_resuming_with_other_settings_is_refused_and_lists_them(tmp_path: Path, change: dict[str, Any]) -> None:
    whole = draw(tmp_path / "s.jsonl")
    with pytest.raises(UserError) as refused:
        draw(tmp_path / "s.jsonl", settings=header(**change))
    assert all(key in str(refused.value) for key in change) and "\n" not in str(refused.value)
    assert (tmp_path / "s.jsonl").read_bytes() == whole


def test_a_broken_or_edited_middle_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = draw(tmp_path / "s.jsonl").splitlines(keepends=True)
    for broken in ([*lines[:5], b"{oops\n", *lines[6:]], [*lines[:5], *lines[6:]], [*lines[:5], b"{}\n", *lines[6:]]):
        (tmp_path / "s.jsonl").write_bytes(b"".join(broken))
        with pytest.raises(UserError, match="line 6"):
            draw(tmp_path / "s.jsonl")
    (tmp_path / "s.jsonl").write_bytes(b"".join([*lines[:5], *lines[6:]]))
    with pytest.raises(UserError, match="p1"):
        load(tmp_path / "s.jsonl")


def test_a_file_that_is_no_store_is_not_overwritten(tmp_path: Path) -> None:
    for content in (b"notes without a newline", b"notes\n", b'{"version": 1}\n', b'{"version": 9}\n'):
        (tmp_path / "s.jsonl").write_bytes(content)
        with pytest.raises(UserError, match="line 1"):
            draw(tmp_path / "s.jsonl")
        assert (tmp_path / "s.jsonl").read_bytes() == content


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    ids = [problem.id for problem in PROBLEMS]
    with (
        SampleStore(tmp_path / "s.jsonl", header(), ids),
        pytest.raises(UserError, match="another process"),
        SampleStore(tmp_path / "s.jsonl", header(), ids),
    ):
        pass


def test_a_full_disk_is_one_clear_line_and_the_store_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(tmp_path / "whole.jsonl")
    synced = 0

    def full(descriptor: int) -> None:
        nonlocal synced
        synced += 1
        if synced == 7:  # the header, problems.jsonl and its folder, three problems
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(UserError, match=r"No space left.*after 3 of 11 problems"):
        patch.setattr(os, "fsync", full)
        draw(tmp_path / "s.jsonl")
    assert load(tmp_path / "s.jsonl").problem_ids == ("p0", "p1", "p2")
    assert draw(tmp_path / "s.jsonl") == whole


def test_missing_and_empty_stores_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="broadreach eval"):
        load(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UserError, match="empty"):
        load(tmp_path / "empty.jsonl")
    with SampleStore(tmp_path / "new.jsonl", header(), [problem.id for problem in PROBLEMS]):
        pass
    with pytest.raises(UserError, match="not one problem"):
        load(tmp_path / "new.jsonl")


def test_settings_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="greedy"):
        header(temperature=0.0)
    assert header(temperature=0.0, samples=1).samples == 1
    with pytest.raises(UserError, match="at least one"):
        header(samples=0)
    with pytest.raises(UserError, match="twice"), SampleStore(tmp_path / "s", header(problems=2), ["a", "a"]):
        pass


def test_questions_stand_beside_the_store_unless_the_task_is_private(tmp_path: Path) -> None:
    draw(tmp_path / "open/s.jsonl")
    assert read_problems(tmp_path / "open/s.jsonl")["p2"] == {"question": "2 + 2 = ?", "gold": "4"}
    draw(tmp_path / "private/s.jsonl", settings=header(private=True))
    assert read_problems(tmp_path / "private/s.jsonl") == {}


def test_a_problem_without_prompt_is_named_before_anything_is_drawn(tmp_path: Path) -> None:
    with SampleStore(tmp_path / "s.jsonl", header(), [problem.id for problem in PROBLEMS]) as store:
        engine = KeyedEngine()
        with pytest.raises(UserError, match="p7"):
            sample(engine, ExactGrader(), store, PROBLEMS, {**PROMPTS, "p7": ()})  # type: ignore[arg-type]
        assert engine.batches == []


def test_the_problem_digest_sees_ids_questions_golds_and_order() -> None:
    digest = problem_digest(PROBLEMS)
    assert digest != problem_digest(PROBLEMS[::-1]) != problem_digest(PROBLEMS[:-1])
    for change in ({"id": "x"}, {"question": "x"}, {"gold": "x"}):
        assert digest != problem_digest([replace(PROBLEMS[0], **change), *PROBLEMS[1:]])
