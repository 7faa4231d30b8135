"""The page of the paper's items: self-contained, ours told from the published, worded as the numbers bear."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from paper_fixture_items import ABOUT, blank_items, items

from broadreach.report.paper_figures import figure_blocks, row_styles
from broadreach.report.paper_files import read_items
from broadreach.report.paper_item import Entry, PaperItem
from broadreach.report.paper_labels import place_labels
from broadreach.report.paper_page import write_paper_page
from broadreach.report.paper_tables import table_blocks
from broadreach.report.paper_words import bracket, decimals, heading, level
from broadreach.report.svg import to_svg


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("paper")
    write_paper_page(items(), ABOUT, out)
    return out


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


def section(page: str, name: str) -> str:
    """One item's part of the page."""
    return page.split(f'<section id="{name}"')[1].split("</section>")[0]


def undrawn(page: str) -> str:
    """The page without drawings and data links, which six digits move by a hair."""
    return re.sub(r"<svg.*?</svg>|base64,[^\"]*", "", page, flags=re.DOTALL)


def by_id(name: str) -> PaperItem:
    return next(item for item in items() if item.id == name)


def table(*entries: Entry, **changes: Any) -> PaperItem:
    return replace(PaperItem("table-1", "T", "S.", "table", entries), **changes)


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert links and all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"<script|<link rel=\"stylesheet|@import|url\((?!#)", page)
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and {link[1:] for link in links if link[0] == "#"} <= set(ids)


def test_every_statement_stands_in_the_summary_and_links_to_its_item(page: str) -> None:
    summary = section(page, "verdicts")
    for item in items():
        for claim in item.statements:
            assert claim.number in summary
            if "<" not in claim.statement:
                row = summary.split(claim.statement)[1].split("</tr>")[0]
                assert claim.verdict in row and f'href="#{item.id}"' in row
            assert claim.evidence in section(page, item.id)
    counts = re.findall(r'class="value">(\d+)<', summary)
    assert counts == ["2", "2", "1", "1"], "confirmed, refuted, undecided, not measured here"


def test_hostile_texts_stay_texts(page: str) -> None:
    assert "&lt;b&gt;Pass@32&lt;/b&gt; &amp; more" in page
    assert "&lt;/style&gt;&lt;script&gt;" in page
    assert "<script" not in page


def test_an_unmeasured_item_names_its_command(page: str) -> None:
    missing = section(page, "figure-6")
    assert "Not measured. <code>broadreach paper run figure-6 --scale laptop</code>" in missing
    assert "<svg" not in missing and "<table" not in missing
    assert "Not measured." not in section(page, "table-4")


def test_published_numbers_alone_do_not_count_as_measured(tmp_path: Path) -> None:
    blank = [replace(item) for item in blank_items()]
    page = write_paper_page(blank, {}, tmp_path).read_text(encoding="utf-8")
    assert page.count("Not measured. ") == len(blank)
    assert "0 of 7 items are measured" in page and "--scale" not in page
    assert "80.2" in section(page, "figure-3"), "the published numbers are shown all the same"


def test_the_files_beside_the_page_make_it_again(folder: Path, page: str, tmp_path: Path) -> None:
    again = write_paper_page(read_items(folder / "tables", blank_items()), ABOUT, tmp_path)
    text = again.read_text(encoding="utf-8")
    assert undrawn(text) == undrawn(page)
    names = {path.stem for path in (folder / "figures").glob("*.pdf")}
    assert names == {path.stem for path in (folder / "figures").glob("*.csv")} and len(names) == 4
    assert all(path.read_bytes().startswith(b"%PDF") for path in (folder / "figures").glob("*.pdf"))


def test_the_end_says_how_it_was_made(page: str) -> None:
    end = section(page, "reproduce")
    for text in (
        "git checkout 9ff2ab2\n",
        "broadreach paper run --scale laptop",
        "processor AMD EPYC; cores 2",
        "1 h 10 min",
    ):
        assert text in end
    assert end.index("1 h 10 min") < end.index("30 min 0 s") < end.index("1 min 2 s"), "the longest first"


def test_published_numbers_of_the_same_panel_stand_in_our_cells() -> None:
    (block,) = table_blocks(by_id("table-4"))
    (shown,) = block.tables
    assert shown.origin == "ours" and shown.both
    name, _, cells = shown.rows[0]
    assert name == "Qwen2.5-1.5B-Instruct"
    assert [cell.value for cell in cells if cell] == ["2.13", "4.99", "2.35"]
    assert [cell.interval for cell in cells if cell] == ["[2.00, 2.30]", "[4.90, 5.10]", "[2.31, 2.37]"]
    assert [cell.paper for cell in cells if cell] == ["0.0475", "1.933", "40.7"]


def test_panels_of_one_shape_stand_side_by_side_ours_first() -> None:
    (block,) = table_blocks(by_id("table-10"))
    assert block.beside and [one.origin for one in block.tables] == ["ours", "published"]
    (figures,) = figure_blocks(by_id("figure-3"))
    assert [one.origin for one in figures.axes] == ["ours", "published"]


def test_a_published_panel_of_the_same_name_is_preferred() -> None:
    entries = [Entry("ours", name, "a", "b", 1.0) for name in ("x", "y")]
    entries += [Entry("published", name, "a", "b", 1.0) for name in ("y", "z")]
    drawn = [replace(entry, x=place) for place, entry in enumerate(entries)]
    blocks = figure_blocks(table(*drawn, kind="points"))
    assert [[one.panel for one in block.axes] for block in blocks] == [["x", "z"], ["y", "y"]]


def test_a_long_published_table_is_folded_and_ours_is_open() -> None:
    ours, published = table_blocks(by_id("table-2"))
    assert ours.folded == "" and ours.tables[0].numbers == 75
    assert published.folded == "Published: 3 tables, 315 numbers" and not published.opened
    entries = [Entry("ours", "p", f"row {n}", "c", 1.0) for n in range(81)]
    (long,) = table_blocks(table(*entries))
    assert long.folded == "Ours: p, 81 numbers" and long.opened


def test_units_stand_where_they_are_shared() -> None:
    def shown(*units: str) -> Any:
        places = (("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"))
        entries = [Entry("ours", "", *place, 1.0, unit=unit) for place, unit in zip(places, units, strict=True)]
        return table_blocks(table(*entries))[0].tables[0]

    assert shown("nats", "nats", "nats", "nats").unit == "nats"
    assert shown("nats", "percent", "nats", "percent").columns == (("x", "nats"), ("y", "%"))
    assert [row[1] for row in shown("nats", "nats", "count", "count").rows] == ["nats", ""]
    mixed = shown("nats", "percent", "percent", "nats")
    assert mixed.unit == "" and [cell.value for cell in mixed.rows[0][2]] == ["1 nats", "1.0 %"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (Entry("ours", "", "", "", 28.123456, 24.0, 32.1), "28.1 [24.0, 32.1]"),
        (Entry("ours", "", "", "", 28.123456, 28.0, 28.3), "28.12 [28.00, 28.30]"),
        (Entry("ours", "", "", "", -0.04, -1.2, 1.1, unit="points"), "0.0 [−1.2, +1.1]"),
        (Entry("published", "", "", "", 73.351), "73.351"),
        (Entry("published", "", "", "", 0.0475), "0.0475"),
        (Entry("ours", "", "", "", 0.04753, 0.0471, 0.0482), "0.0475 [0.0471, 0.0482]"),
        (Entry("ours", "", "", "", 79.1164), "79.12"),
        (Entry("published", "", "", "", -0.4, unit="points"), "−0.4"),
        (Entry("ours", "", "", "", 0.0312345, 0.028, 0.034, unit="nats"), "0.031 [0.028, 0.034]"),
        (Entry("ours", "", "", "", 1.234567e-6, unit="ratio"), "1.235e-06"),
        (Entry("published", "", "", "", 1.9870, unit="ratio"), "1.987"),
        (Entry("ours", "", "", "", 722584.0, unit="count"), "722,584"),
        (Entry("ours", "", "", "", 133.0, unit="seconds"), "2 min 13 s"),
        (Entry("ours", "", "", "", None), "–"),
        (Entry("ours", "", "", "", -3.5, unit="widgets"), "−3.5"),
    ],
)
def test_numbers_are_written_as_far_as_they_bear(entry: Entry, said: str) -> None:
    digits = decimals(entry) or 1
    assert f"{level(entry, digits)} {bracket(entry, digits)}".strip() == said


def test_the_heading_says_the_papers_number_once() -> None:
    assert heading(by_id("table-2")) == "Table 2: Pass@K in the Easy setting"
    assert heading(by_id("table-10")) == "Table 10: change on held-out tasks"
    assert heading(by_id("settings")) == "Normalisation and estimators"


def test_figures_are_drawn_one_for_each_panel_and_say_their_numbers() -> None:
    (block,) = figure_blocks(by_id("figure-2"))
    assert [one.panel for one in block.axes] == ["nano-chain", "nano-choice"]
    figure = block.axes[0].figure
    assert "ES: 0.620 → 0.561; GRPO: 0.620 → 0.279" in figure.description
    drawing = to_svg(figure)
    ElementTree.fromstring(drawing)
    assert all(text in drawing for text in ("GRPO→ES", "Token entropy, nats", ">update<"))
    assert len(figure.columns["x"]) == 46, "the unknown value has its line in the file"


def test_a_panel_without_a_known_number_is_not_drawn() -> None:
    assert figure_blocks(table(Entry("ours", "", "a", "b", None, x=1.0), kind="lines")) == []


def test_two_panels_that_read_alike_have_their_own_names() -> None:
    entries = [Entry("ours", panel, "a", "b", 1.0, x=1.0) for panel in ("p 1", "p-1", "p.1")]
    (block,) = figure_blocks(table(*entries, kind="lines"))
    assert [one.figure.name for one in block.axes] == [f"table-1-ours-p-1-b{end}" for end in ("", "-2", "-3")]


def test_methods_look_alike_in_every_figure_and_rows_never_share_a_look() -> None:
    assert row_styles(["ES", "x"])["ES"] == row_styles(["Base", "GRPO", "ES"])["ES"]
    assert row_styles(["ES → GRPO"])["ES → GRPO"] == row_styles(["es->grpo"])["es->grpo"]
    rows = ["ES", "GRPO", "N = 8", "N = 16", "N = 32", "N = 64"]
    assert len(set(row_styles(rows).values())) == len(rows)


def test_names_of_close_points_do_not_lie_over_each_other() -> None:
    named = [("GRPO", 82.4, 96.0), ("ES→GRPO", 81.9, 96.8), ("GRPO→ES", 82.4, 96.7), ("Base", 17.7, 87.5)]
    places = place_labels(named, (10, 92), (85, 100))
    assert len({(right, up) for right, up, _ in places[:3]}) == 3
    assert places[3] == (9.0, 0.0, "left"), "a point alone is named on its right"


def test_a_small_percentage_keeps_its_digits_and_its_column_stays_even() -> None:
    entries = [Entry("published", "", str(value), "L2", value) for value in (4.185, 1.93, 0.0954)]
    (block,) = table_blocks(table(*entries))
    assert [row[2][0].value for row in block.tables[0].rows if row[2][0]] == ["4.185", "1.930", "0.0954"]


def test_panels_about_different_things_are_no_pair() -> None:
    places = {"ours": ("nano, all-tasks", "nano, chain"), "published": ("Qwen, gsm8k", "Qwen, all tasks")}
    entries = [Entry(origin, name, "a", "b", 1.0, x=1.0) for origin, names in places.items() for name in names]
    blocks = figure_blocks(table(*entries, kind="points"))
    assert [[one.panel for one in block.axes] for block in blocks] == [
        ["nano, all-tasks", "Qwen, all tasks"],
        ["nano, chain"],
        ["Qwen, gsm8k"],
    ]


def test_brackets_behind_a_name_change_neither_its_look_nor_its_partner() -> None:
    assert row_styles(["ES (68%)"])["ES (68%)"] == row_styles(["ES"])["ES"]
    entries = [
        Entry("ours", "nano", "ES (68%)", "Pass@32", 1.0, x=1.0),
        Entry("published", "Q", "ES", "Pass@32", 1.0, x=1.0),
    ]
    (block,) = figure_blocks(table(*entries, kind="points"))
    assert [one.origin for one in block.axes] == ["ours", "published"]


def test_many_published_figures_are_folded() -> None:
    entries = [Entry("published", f"m, {n}", "a", "b", 1.0, x=1.0) for n in range(5)]
    (block,) = figure_blocks(table(*entries, kind="lines"))
    assert block.folded == "Published: 5 figures"
