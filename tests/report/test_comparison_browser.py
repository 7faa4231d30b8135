"""The comparison in a real headless Chromium: quiet, filters, links, keyboard, hostile texts, and 5,000 problems."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparison_fixture_runs import make_run, make_runs
from report_chromium import Browser, chromium

from broadreach.evaluation.table import load
from broadreach.report.comparison_page import write_comparison

pytestmark = [
    pytest.mark.needs_chromium,
    pytest.mark.skipif(
        chromium() is None and os.environ.get("CI") != "true", reason="chromium is not installed (apt install chromium)"
    ),
]
FAST = {"draws": 200}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert chromium() is not None, "CI must have chromium: add it to the image (apt install chromium)"
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return make_runs(tmp_path_factory.mktemp("runs"), problems=60, samples=8, updates=6)


@pytest.fixture(scope="module")
def page(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_comparison(runs, tmp_path_factory.mktemp("page"), **FAST).page


def wait(browser: Browser, expression: str) -> None:
    """Until it is true: unpacking takes a moment."""
    deadline = time.monotonic() + 20
    while not browser.evaluate(expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.02)


def shown(browser: Browser) -> int:
    return int(browser.evaluate("document.getElementById('x-count').textContent").split(" ")[0].replace(",", ""))


def load_page(browser: Browser, page: Path, width: int = 1440, dark: bool = False) -> None:
    browser.open(page, width, dark=dark)
    wait(browser, "document.querySelector('.x-row') !== null")


def counts(run: Path, which: str = "final") -> Any:
    return load(run / "eval" / which / "samples.jsonl").correct.sum(axis=1)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_loads_quietly_and_fits_the_screen(browser: Browser, page: Path, width: int, dark: bool) -> None:
    load_page(browser, page, width, dark)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert browser.fetched() == [page.resolve().as_uri()]


def test_solved_by_and_never_by_pick_the_problems_of_the_stores(browser: Browser, page: Path, runs: list[Path]) -> None:
    load_page(browser, page)
    assert shown(browser) == 60
    _choose(browser, "solves", "m0")
    _choose(browser, "never", "m1")
    expected = int(((counts(runs[0]) > 0) & (counts(runs[2]) == 0)).sum())
    wait(browser, f"document.getElementById('x-count').textContent.startsWith('{expected} of')")
    assert 0 < expected < 60
    _choose(browser, "seed", "all")
    both = (counts(runs[0]) + counts(runs[1]) > 0) & (counts(runs[2]) + counts(runs[3]) == 0)
    wait(browser, f"document.getElementById('x-count').textContent.startsWith('{int(both.sum())} of')")
    pressed = browser.evaluate("document.querySelector('.x-chip[aria-pressed=true]').textContent")
    assert pressed == f"ES solves, GRPO never {int(both.sum())}"


def test_sorting_orders_by_counts_and_the_link_restores_the_view(
    browser: Browser, page: Path, runs: list[Path]
) -> None:
    load_page(browser, page)
    _choose(browser, "never", "m1")
    browser.evaluate("document.getElementById('x-sort-m0').click()")
    wait(browser, "location.hash.includes('sort=m0-desc')")
    chosen = counts(runs[0])[counts(runs[2]) == 0]
    first = browser.evaluate("document.querySelector('.x-row[data-i=\"0\"] .x-cell[data-label=ES]').textContent")
    assert first.startswith(f"{int(np.max(chosen))}/")
    assert (
        browser.evaluate("document.getElementById('x-sort-m0').parentElement.getAttribute('aria-sort')") == "descending"
    )
    link = browser.evaluate("location.href")
    browser.open(page, 1440)
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=link)
    wait(browser, f"(document.getElementById('x-count')?.textContent || '').startsWith('{len(chosen)} of')")
    assert browser.evaluate("document.getElementById('x-never').value") == "m1"


def test_search_finds_by_text_and_by_id(browser: Browser, page: Path) -> None:
    load_page(browser, page)
    _type(browser, "nano-chain-0007")
    wait(browser, "document.getElementById('x-count').textContent.startsWith('1 of 60')")
    _type(browser, "nothing has this")
    wait(browser, "!document.getElementById('x-empty').hidden")
    browser.evaluate("document.getElementById('x-clear').click()")
    wait(browser, "document.getElementById('x-count').textContent.startsWith('60 of 60')")


def test_a_click_opens_the_responses_and_hostile_text_stays_text(browser: Browser, page: Path) -> None:
    load_page(browser, page)
    browser.evaluate("document.querySelector('.x-row[data-i=\"0\"]').click()")
    wait(browser, "document.querySelectorAll('#x-body article').length > 0")
    texts = browser.evaluate("[...document.querySelectorAll('#x-body article pre')].map(p => p.textContent)")
    assert len(texts) == 4 * 8, "base and three methods of one seed"
    assert "</script><script>window.pwned=1</script>" in texts[0]
    assert browser.evaluate("document.querySelectorAll('#x-body script, #x-body img').length") == 0
    assert browser.evaluate("window.pwned === undefined") is True
    heads = browser.evaluate("[...document.querySelectorAll('#x-body h4')].map(h => h.textContent).join('|')")
    assert "correct" in heads and "tokens" in heads
    assert "open=nano-chain-0000" in browser.evaluate("location.hash")
    assert browser.complaints() == []


def test_it_works_by_keyboard_alone(browser: Browser, page: Path) -> None:
    load_page(browser, page)
    browser.evaluate("document.getElementById('x-sort-m2').focus()")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.className") == "x-row"
    _key(browser, "ArrowDown", 40)
    _key(browser, "ArrowDown", 40)
    assert browser.evaluate("document.activeElement.dataset.i") == "2"
    _key(browser, "End", 35)
    assert browser.evaluate("document.activeElement.dataset.i") == "59"
    browser.press("Enter")
    wait(browser, "document.getElementById('x-dialog').open && !document.getElementById('x-body').ariaBusy")
    assert browser.evaluate("document.getElementById('x-title').textContent") == "nano-chain-0059"
    _key(browser, "ArrowLeft", 37)
    wait(browser, "document.getElementById('x-title').textContent === 'nano-chain-0058'")
    _key(browser, "Escape", 27)
    wait(browser, "!document.getElementById('x-dialog').open")
    assert browser.evaluate("document.activeElement.dataset.i") == "58"


def test_another_task_is_unpacked_when_it_is_chosen(browser: Browser, page: Path) -> None:
    load_page(browser, page)
    _choose(browser, "task", "nano-choice")
    wait(browser, "document.querySelector('.x-row code').textContent.startsWith('nano-choice')")
    assert "task=nano-choice" in browser.evaluate("location.hash")


@pytest.mark.slow
def test_five_thousand_problems_five_models_stay_responsive(browser: Browser, tmp_path: Path) -> None:
    made = [make_run(tmp_path, "es", 0, ("nano-chain",), problems=5000, samples=32, extras=False)]
    for method in ("grpo", "es->grpo", "grpo->es"):
        made.append(_as_method(made[0], tmp_path / method.replace("->", "-"), method))
    started = time.monotonic()
    page = write_comparison(made, tmp_path / "page", **FAST).page
    built, size = time.monotonic() - started, page.stat().st_size / 1e6
    load_page(browser, page)
    times = json.loads(
        browser.call("Runtime.evaluate", expression=_TIMED, returnByValue=True, awaitPromise=True)["result"]["value"]
    )
    print(f"built in {built:.0f} s, {size:.1f} MB, {times}")
    assert size < 40
    assert max(times["filter"], times["sort"], times["search"], times["scroll"]) < 200, times
    assert times["open"] < 1000, times
    assert browser.evaluate("document.querySelectorAll('.x-row').length") < 60, "rows are virtual"


_TIMED = """(async () => {
  const $ = id => document.getElementById('x-' + id);
  const settled = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const timed = async act => {
    const start = performance.now();
    act();
    await settled();
    return performance.now() - start;
  };
  const change = (id, value, kind) => { $(id).value = value; $(id).dispatchEvent(new Event(kind)) };
  const found = {};
  await timed(() => {});
  found.filter = await timed(() => change('never', 'm1', 'change'));
  found.search = await timed(() => change('q', 'add 1', 'input'));
  $('clear').click(); await settled();
  found.sort = await timed(() => $('sort-m0').click());
  found.scroll = await timed(() => { $('grid').scrollTop = 100000 });
  const start = performance.now();
  document.querySelector('.x-row').click();
  while (!document.querySelector('#x-body article')) await settled();
  found.open = performance.now() - start;
  return JSON.stringify(found);
})()"""


def _as_method(run: Path, copy: Path, method: str) -> Path:
    """The same stores under another method: making 800,000 responses anew takes minutes."""
    shutil.copytree(run, copy)
    config = copy / "config.toml"
    stages = ", ".join(f'{{ method = "{part}" }}' for part in method.split("->"))
    config.write_text(config.read_text().replace("stages = []", f"stages = [{stages}]"))
    return copy


def _choose(browser: Browser, name: str, value: str) -> None:
    browser.evaluate(
        f"document.getElementById('x-{name}').value = '{value}';"
        f"document.getElementById('x-{name}').dispatchEvent(new Event('change'))"
    )


def _type(browser: Browser, words: str) -> None:
    browser.evaluate(
        f"document.getElementById('x-q').value = '{words}';"
        "document.getElementById('x-q').dispatchEvent(new Event('input'))"
    )


def _key(browser: Browser, key: str, code: int) -> None:
    for kind in ("keyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)
