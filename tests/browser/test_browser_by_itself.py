"""A switch that acts at once, in a real browser: by runs that ship, and by training without a click."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from browser_kit import chip, opened, wait_for
from playwright.sync_api import Browser, Page

from normviz import RunConfig
from normviz.catalog import SCHEMES
from normviz.links import encode

pytestmark = pytest.mark.browser

SHOWN = "JSON.stringify(document.querySelector('.nv-root').player.what.runs)"
AT_END = """() => { const { cursor, fresh } = document.querySelector('.nv-root').player;
  return !fresh && !cursor.playing && cursor.step === cursor.last; }"""
TIMER_FIRST = """(() => {
  const { setInterval: every, setTimeout: later } = window;
  window.ticks = [];
  window.setInterval = (act, ms, ...more) => { window.ticks.push(act); return every(act, ms, ...more); };
  window.setTimeout = (act, ms, ...more) => later(ms || !window.pressed ? act : () => {
    window.ticks.at(-1)();
    act();
  }, ms, ...more);
})()"""
"""Once `pressed` is set, a fragment's timer fires between a change of a widget and its message."""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    yield tab
    assert tab.locator(".stException").count() == 0
    tab.context.close()


def took(act: Callable[[], object], done: Callable[[], object]) -> float:
    """Seconds from the beginning of an action until its effect."""
    began = time.monotonic()
    act()
    wait_for(done)
    return time.monotonic() - began


def switch(page: Page, label: str) -> None:
    page.locator(".st-key-lane1_scheme").get_by_text(label, exact=True).click()


def test_a_switch_of_the_opening_duel_shows_the_end_of_a_shipped_run_at_once(
    page: Page, address: str
) -> None:
    """The fastest of four within a second beyond five script runs of the page."""
    opened(page, address)
    times = []
    for label in map(SCHEMES.label, ("peri", "sandwich", "deepnorm", "pre")):
        before = page.evaluate(SHOWN)
        times.append(
            took(
                lambda label=label: switch(page, label),
                lambda before=before: page.evaluate(SHOWN) != before and page.evaluate(AT_END),
            )
        )
        wait_for(lambda: "learned" in chip(page, 1))
        assert page.locator(".nv-progress").is_hidden()
    page.locator(".st-key-by_itself label").click()
    slider = page.locator(".st-key-knob_steps input[type=range]")
    slider.focus()
    script_run = took(
        lambda: page.keyboard.press("ArrowLeft"), lambda: "press Train" in chip(page, 1)
    )
    print(f"a switch took {min(times):.2f} to {max(times):.2f} s, a script run {script_run:.2f} s")
    assert min(times) < 1.0 + 5 * script_run


def test_a_short_duel_trains_by_itself_and_a_link_does_not(page: Page, address: str) -> None:
    short = RunConfig(depth=3, steps=300)
    opened(page, f"{address}/?{encode([short, short.replace(scheme='post')])}", charts=0)
    page.get_by_text("Nobody has run this yet").wait_for()
    slider = page.locator(".st-key-knob_depth input[type=range]")
    for _ in range(2):  # two changes, of which the last one trains
        slider.focus()
        page.keyboard.press("ArrowLeft")
    wait_for(lambda: "depth=1&" in page.evaluate("location.href"))
    wait_for(lambda: page.locator(".st-key-live canvas").count() >= 3)
    wait_for(lambda: all("loss" in chip(page, lane) for lane in (0, 1)))
    assert page.get_by_text("Faded curves").count() == 0

    page.locator(".st-key-by_itself label").click()
    wait_for(lambda: page.locator(".st-key-by_itself input:not(:checked)").count())
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Faded curves show earlier settings").wait_for()
    assert "press Train" in chip(page, 0)


def test_a_press_that_a_timer_carries_first_is_taken(page: Page, address: str) -> None:
    page.add_init_script(TIMER_FIRST)
    long = RunConfig(steps=20, depth=4, init_seed=41)
    opened(page, f"{address}/?{encode([long, long.replace(scheme='post')])}", charts=0)
    page.get_by_text("Nobody has run this yet").wait_for()
    slider, timers = page.locator(".st-key-knob_depth input[type=range]"), "window.ticks.length"
    for depth in (3, 2, 1):
        before = page.evaluate(timers)
        slider.focus()
        page.keyboard.press("ArrowLeft")
        wait_for(lambda d=depth: f"depth={d}&" in page.evaluate("location.href"))
        wait_for(lambda n=before: page.evaluate(timers) > n)
        page.evaluate("window.pressed = true")
