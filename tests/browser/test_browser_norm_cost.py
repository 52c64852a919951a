"""The Norm cost page in a real browser, at a desk and on a phone: measure, watch, read, reload."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, text_now, wait_for
from playwright.sync_api import Browser, ConsoleMessage, Page

from normviz.norm_cost import stored_results
from normviz.norm_cost.result import Setting

pytestmark = pytest.mark.browser
MINE = "[...document.querySelectorAll('input')].some((i) => i.value.startsWith('width 32, 64 '))"
ACROSS = "document.querySelector('.stMain').scrollWidth"
CHARTS = "document.querySelectorAll('.st-key-cost_charts canvas').length === 3"


def least(page: Page, knob: str) -> None:
    """Set a knob to its least value, with the keyboard alone."""
    page.locator(f".st-key-cost_{knob} input[type=range]").press("Home")


def fits(page: Page) -> None:
    """At both widths the charts stand, and nothing needs a sideways scroll."""
    for width in (1280, 375):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(CHARTS)
        wait_for(lambda w=width: page.evaluate(ACROSS) <= w)


def test_from_the_shipped_result_to_one_s_own(browser: Browser, address: str, data: Path) -> None:
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        # Streamlit's own look for its server below a page's address, when one is opened directly; and
        # its font, which a busy browser loads long before it draws a word.
        told = message.type in ("error", "warning") and "was preloaded" not in message.text
        if told and "/_stcore/" not in message.location["url"]:
            said.append(message.text)

    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", hear)
    page.goto(address)
    page.get_by_role("link", name="Norm cost").click()
    fits(page)
    for knob in ("width", "tokens"):
        least(page, knob)
    page.get_by_text("About 23 s").wait_for()
    page.locator(".st-key-cost_start button").click()
    page.locator(".st-key-cost_status").get_by_text("Round").wait_for()
    wait_for(lambda: len(stored_results.kept(data)) == 1)
    page.wait_for_function(MINE)
    page.wait_for_function(CHARTS)
    assert stored_results.kept(data)[0].setting == Setting(width=32, tokens=64)
    page.reload()
    page.wait_for_function(MINE)
    fits(page)
    assert text_now(page, ".stException") == ""
    page.close()
    assert said == []
