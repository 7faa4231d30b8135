"""The page of the paper's items in a real headless Chromium: quiet, self-contained, wide and narrow, keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from paper_fixture_items import ABOUT, items
from report_chromium import Browser, chromium

from broadreach.report.paper_page import write_paper_page

pytestmark = [
    pytest.mark.needs_chromium,
    pytest.mark.skipif(
        chromium() is None and os.environ.get("CI") != "true", reason="chromium is not installed (apt install chromium)"
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert chromium() is not None, "CI must have chromium: add it to the image (apt install chromium)"
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_paper_page(items(), ABOUT, tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_loads_quietly_and_fits_the_screen(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 4
    assert browser.evaluate("window.pwned === undefined") is True
    assert browser.complaints() == []
    assert browser.fetched() == [page.resolve().as_uri()]


def test_no_name_of_a_row_is_broken_letter_by_letter_on_a_phone(browser: Browser, page: Path) -> None:
    browser.open(page, 390)
    widths = browser.evaluate("[...document.querySelectorAll('.paper-table tbody th')].map(h => h.clientWidth)")
    assert min(width for width in widths if width) >= 84


def test_ours_and_the_published_stand_side_by_side_on_a_wide_screen(browser: Browser, page: Path) -> None:
    for width, beside in ((1280, True), (390, False)):
        browser.open(page, width)
        ours, published = browser.evaluate(
            "[...document.querySelectorAll('#table-10 .two .card')].map(c => c.getBoundingClientRect().top)"
        )
        assert (ours == published) is beside and ours <= published


def test_a_folded_table_opens_by_keyboard_alone(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    browser.tab_to_summary()
    assert browser.evaluate("document.activeElement.textContent") == "Published: 3 tables, 315 numbers"
    assert browser.evaluate("document.activeElement.parentElement.open") is False
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.parentElement.open") is True


def test_a_link_of_the_summary_brings_its_item_below_the_bar(browser: Browser, page: Path) -> None:
    browser.open(page, 1280)
    browser.evaluate("document.querySelector('#verdicts a[href=\"#table-4\"]').click()")
    heading = browser.evaluate("document.getElementById('table-4-heading').getBoundingClientRect().top")
    bar = browser.evaluate("document.querySelector('nav').getBoundingClientRect().bottom")
    assert bar <= heading < 300


def test_text_keeps_its_contrast_in_both_schemes(browser: Browser, page: Path) -> None:
    for dark in (False, True):
        browser.open(page, 1280, dark=dark)
        ratios = browser.evaluate(_CONTRAST)
        assert len(ratios) > 100 and min(ratios) >= 4.5, min(ratios)


_CONTRAST = """(() => {
  const light = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const level = rgb => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => sum + w * light(rgb[i] / 255), 0);
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
  };
  return [...document.querySelectorAll('p, td, th, a, small, code, span, li, summary, figcaption, h1, h2, h3')]
    .filter(e => e.textContent.trim())
    .map(e => [level(parts(getComputedStyle(e).color)), level(behind(e))].sort((a, b) => b - a))
    .map(([bright, dim]) => (bright + 0.05) / (dim + 0.05));
})()"""
