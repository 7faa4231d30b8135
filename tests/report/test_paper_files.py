"""The files of the paper's items: what is written is read back, and what is malformed is named to the cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from paper_fixture_items import ABOUT, blank_items, items

from broadreach.report.claims import CONFIRMED, Claim
from broadreach.report.paper_files import (
    ENTRY_COLUMNS,
    read_about,
    read_entries,
    read_items,
    read_statements,
    write_about,
    write_item,
    write_statements,
)
from broadreach.report.paper_item import Entry, PaperItem
from broadreach.types import UserError

HEADER = ",".join(ENTRY_COLUMNS)


def rounded(entry: Entry) -> Entry:
    """What six significant digits keep."""
    kept = {name: getattr(entry, name) for name in ("value", "low", "high", "x")}
    return replace(entry, **{name: n if n is None else float(f"{n:.6g}") for name, n in kept.items()})


def item(*entries: Entry, **changes: object) -> PaperItem:
    return replace(PaperItem("table-4", "Drift", "It drifts.", "table", entries), **changes)


def test_a_folder_of_csv_files_gives_the_items_back(tmp_path: Path) -> None:
    measured = items()
    for one in measured:
        if any(entry.origin == "ours" for entry in one.entries):
            write_item(one, tmp_path)
    write_statements(measured, tmp_path)
    again = read_items(tmp_path, blank_items())
    assert [replace(one, entries=()) for one in again] == [replace(one, entries=()) for one in measured]
    assert [one.entries for one in again] == [tuple(map(rounded, one.entries)) for one in measured]


def test_numbers_have_at_most_six_significant_digits(tmp_path: Path) -> None:
    entries = (Entry("ours", "", "a", "b", 1 / 3, -1e-9 / 3, 12345678.0, x=None),)
    text = write_item(item(*entries), tmp_path).read_text()
    assert text.splitlines()[1] == "ours,,a,b,,0.333333,-3.33333e-10,1.23457e+07,percent"


def test_texts_with_commas_quotes_and_line_breaks_come_back(tmp_path: Path) -> None:
    entry = Entry("published", 'a "panel", x', "row\nof two", "Δ, %", 1.5, x=2.0, unit="points")
    assert read_entries(write_item(item(entry), tmp_path)) == (entry,)


def test_an_item_without_a_file_keeps_its_published_numbers(tmp_path: Path) -> None:
    told = Entry("published", "", "a", "b", 1.0)
    blank = item(told)
    assert read_items(tmp_path, [blank]) == [blank]
    own = Entry("ours", "", "a", "b", 2.0)
    write_item(item(own), tmp_path)
    assert read_items(tmp_path, [blank])[0].entries == (own, told)
    write_item(item(own, replace(told, value=3.0)), tmp_path)
    assert read_items(tmp_path, [blank])[0].entries == (own, replace(told, value=3.0))


def test_statements_of_other_items_stay_when_one_is_written_again(tmp_path: Path) -> None:
    claims = tuple(Claim(str(n), "it, holds", CONFIRMED, "") for n in range(3))
    write_statements([item(statements=claims[:2]), item(id="table-5", statements=claims[2:])], tmp_path)
    write_statements([item(statements=claims[:1], notes=("new",))], tmp_path)
    assert read_statements(tmp_path) == {"table-4": claims[:1], "table-5": claims[2:]}
    assert read_items(tmp_path, [item()])[0].notes == ("new",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("theirs,,a,b,,1,,,percent", "line 3, column origin: 'theirs' is not known; use one of: ours, published"),
        ("ours,,a,b,,one,,,percent", "line 3, column value: 'one' is no finite number"),
        ("ours,,a,b,,nan,,,percent", "line 3, column value: 'nan' is no finite number"),
        ("ours,,a,b,inf,1,,,percent", "line 3, column x: 'inf' is no finite number"),
        ("ours,,,b,,1,,,percent", "line 3, column row: is empty"),
        ("ours,,a,b,,1,,,", "line 3, column unit: is empty"),
        ("ours,,a,b,,1,0.5,,percent", "line 3, column high: is empty; give both ends"),
        ("ours,,a,b,,1,2,0,percent", "line 3, column low: 2 lies above high 0"),
        ("ours,,first,b,,1,,,percent", "line 3, column column: the same place as line 2"),
        ("ours,,a,b,,1,,", "line 3: column unit is missing (8 of 9)"),
        ("ours,,a,b,,1,,,percent,more", "line 3: too many columns (10 of 9)"),
        ('ours,,a,"b,,1,,,percent', "line 3: unexpected end of data"),
    ],
)
def test_a_malformed_line_is_named_with_its_cell(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "table-4.csv"
    path.write_text(f"{HEADER}\nours,,first,b,,1,,,percent\n{line}\n")
    with pytest.raises(UserError) as caught:
        read_entries(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, ") and said in message and "\n" not in message


def test_the_line_of_an_error_counts_line_breaks_inside_texts(tmp_path: Path) -> None:
    path = tmp_path / "table-4.csv"
    path.write_text(f'{HEADER}\nours,,"a\nb\nc",d,,1,,,percent\nours,,a,b,,?,,,percent\n')
    with pytest.raises(UserError, match="line 5, column value"):
        read_entries(path)


def test_another_header_or_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table-4.csv"
    with pytest.raises(UserError, match=r"does not exist.*broadreach paper run table-4"):
        read_entries(path)
    for text in ("", "origin,panel\n"):
        path.write_text(text)
        with pytest.raises(UserError, match="line 1: the columns must be origin,panel,row"):
            read_entries(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="cannot be read"):
        read_entries(path)


def test_a_figure_needs_its_x(tmp_path: Path) -> None:
    blank = item(kind="lines")
    write_item(item(Entry("ours", "", "a", "b", 1.0)), tmp_path)
    with pytest.raises(UserError, match=r"table-4.csv, line 2, column x: is empty"):
        read_items(tmp_path, [blank])
    assert len(read_items(tmp_path, [item()])[0].entries) == 1


def test_an_unknown_verdict_is_refused(tmp_path: Path) -> None:
    (tmp_path / "statements.csv").write_text("item,number,statement,verdict,evidence\ntable-4,1,s,maybe,e\n")
    with pytest.raises(UserError, match=r"statements.csv, line 2, column verdict: 'maybe' is not known"):
        read_statements(tmp_path)


def test_about_comes_back_and_may_be_absent(tmp_path: Path) -> None:
    assert read_about(tmp_path) == {}
    write_about(ABOUT, tmp_path)
    assert read_about(tmp_path) == ABOUT
    for text, said in (("{", "is not JSON"), ("[]", "must hold one JSON object")):
        (tmp_path / "about.json").write_text(text)
        with pytest.raises(UserError, match=said):
            read_about(tmp_path)
