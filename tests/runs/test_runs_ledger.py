"""The ledger: what was written is read back, a torn tail is dropped, an edit is found."""

import json

import pytest

from broadreach.runs.ledger import Ledger, LedgerEntry, LedgerHeader, read_ledger
from broadreach.types import StepRecord, Update, UserError

HEADER = LedgerHeader(3, "ab" * 16, 1, "cd" * 16, "exact", "float32", "one_point")


def entry(step, moved=True):
    update = Update((0, 1), (2**29, -(2**29)), 31) if moved else None
    return LedgerEntry(StepRecord(step, 0.1, 0.01, (0.1 + 0.2, 1.0), update, ("p1", "p2")), f"{step:032x}")


def written(path, steps=4):
    ledger = Ledger(path, read_ledger(path)).open()
    ledger.write_header(HEADER)
    for step in range(1, steps + 1):
        ledger.append(entry(step, moved=step != 2))
    ledger.close()
    return path


def test_round_trip_is_exact(tmp_path):
    contents = read_ledger(written(tmp_path / "ledger.jsonl"))
    assert contents.header == HEADER and not contents.torn
    assert list(contents.entries) == [entry(1), entry(2, moved=False), entry(3), entry(4)]


def test_appending_after_reopening_gives_the_same_bytes(tmp_path):
    whole, halves = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    written(whole, 4)
    written(halves, 2)
    ledger = Ledger(halves, read_ledger(halves)).open()
    ledger.append(entry(3))
    ledger.append(entry(4))
    ledger.close()
    assert whole.read_bytes() == halves.read_bytes()


def test_a_torn_tail_of_any_length_is_dropped(tmp_path):
    path = written(tmp_path / "ledger.jsonl")
    data = path.read_bytes()
    last = data.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last, len(data)):
        path.write_bytes(data[:cut])
        contents = read_ledger(path)
        assert len(contents.entries) == 3 and contents.valid_bytes == last and contents.torn == (cut > last)
    path.write_bytes(data[:-9])
    ledger = Ledger(path, read_ledger(path)).open()
    ledger.append(entry(4))
    ledger.close()
    assert path.read_bytes() == data


@pytest.mark.parametrize("line", [0, 1, 3, 4])
def test_an_edited_line_is_refused_by_number(tmp_path, line):
    path = written(tmp_path / "ledger.jsonl")
    lines = path.read_text().splitlines()
    lines[line] = lines[line].replace("0.01" if line else '"seed":3', "0.02" if line else '"seed":4')
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=f"line {line + 1} was changed"):
        read_ledger(path)


def test_a_removed_line_is_refused(tmp_path):
    path = written(tmp_path / "ledger.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:2] + lines[3:]) + "\n")
    with pytest.raises(UserError, match="line 3"):
        read_ledger(path)


def test_garbage_in_the_middle_is_refused(tmp_path):
    path = written(tmp_path / "ledger.jsonl")
    lines = path.read_text().splitlines()
    lines[2] = "not json"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="line 3 was changed"):
        read_ledger(path)


def test_a_step_costs_kilobytes_at_most(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, read_ledger(path)).open()
    update = Update(tuple(range(32)), tuple(2**29 + i for i in range(32)), 40)
    record = StepRecord(
        1, 0.1, 0.01, tuple(i / 7 for i in range(32)), update, tuple(f"gsm8k-train-{i}" for i in range(64))
    )
    ledger.append(LedgerEntry(record, "0" * 32))
    ledger.close()
    assert len(path.read_bytes()) < 4096
    assert json.loads(path.read_text())["digest"] == "0" * 32
