"""The page in a real headless Chromium: quiet console, no request but the file, no sideways scrolling, keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_chromium import Browser, chromium
from report_fixture_run import make_run

from broadreach.report.html import write_report

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
    root = tmp_path_factory.mktemp("browser")
    run = make_run(root, updates=12, planned=20, problems=40, samples=8)
    config = run / "config.toml"
    config.write_text(config.read_text() + f"\n# {'a long line ' * 40}\n")
    return write_report(run, run / "report")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1366])
def test_it_loads_quietly_and_fits_the_screen(browser: Browser, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelectorAll('figure svg').length") == 6
    assert browser.complaints() == []
    assert browser.fetched() == [page.resolve().as_uri()]


def test_text_keeps_its_contrast_in_both_schemes(browser: Browser, page: Path) -> None:
    for dark in (False, True):
        browser.open(page, 1366, dark=dark)
        ratios = browser.evaluate(_CONTRAST)
        assert min(ratios.values()) >= 4.5, ratios


def test_a_problem_opens_by_keyboard_alone(browser: Browser, page: Path) -> None:
    browser.open(page, 1366)
    browser.tab_to_summary()
    assert browser.evaluate("document.activeElement.parentElement.className") == "problem"
    assert browser.evaluate("document.activeElement.parentElement.open") is False
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.parentElement.open") is True


_CONTRAST = """(() => {
  const light = c => { const v = c / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 };
  const level = hex => [[1, 0.2126], [3, 0.7152], [5, 0.0722]]
    .reduce((sum, [at, w]) => sum + w * light(parseInt(hex.slice(at, at + 2), 16)), 0);
  const style = getComputedStyle(document.documentElement);
  const named = name => style.getPropertyValue('--' + name).trim();
  const ratios = {};
  for (const back of ['page', 'card'])
    for (const ink of ['ink', 'muted', 'es', 'good', 'bad', 'noise']) {
      const pair = [level(named(ink)), level(named(back))].sort((a, b) => b - a);
      ratios[ink + ' on ' + back] = (pair[0] + 0.05) / (pair[1] + 0.05);
    }
  return ratios;
})()"""
