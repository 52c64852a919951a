"""The Maps page in a real browser: a shipped map, the run of a cell, and a new map that fills live."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from browser_kit import PATIENCE_MS, address_of, chip, text_now, wait_for
from playwright.sync_api import Browser, Page

from normviz.links import decode
from normviz.maps.link import ask

pytestmark = pytest.mark.browser
CHARTS = ".st-key-maps .stVegaLiteChart canvas"


def opened(page: Page, address: str, maps: int) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.wait_for_function(f"document.querySelectorAll('{CHARTS}').length == {maps}")
    return page


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def at(page: Page, chart: int, column: float, row: float) -> tuple[float, float]:
    """A place in a map, by shares of the plot from its lower left corner."""
    box = page.locator(CHARTS).nth(chart).bounding_box()
    assert box is not None
    # The plot begins right of the labels and ends at the right edge; it is 46 pixels a row high.
    left, top, height = box["x"] + 80, box["y"] + 52, 46 * 6
    return left + column * (box["x"] + box["width"] - left), top + (1 - row) * height


def test_from_a_shipped_map_to_the_run_of_a_cell(browser: Browser, address: str) -> None:
    page = opened(browser.new_page(viewport={"width": 1280, "height": 900}), f"{address}/maps", 3)
    assert page.locator(".st-key-fill").count() == 0
    place = at(page, 0, 0.25, 0.6)
    page.mouse.move(*place)
    page.locator("#vg-tooltip-element.visible img").wait_for()
    said = text_now(page, "#vg-tooltip-element")
    assert "depth 4, learning rate 0.003" in said and "learned" in said
    page.mouse.click(*place)
    page.wait_for_selector(".st-key-live canvas")
    wait_for(lambda: "learned" in chip(page, 0))
    wait_for(lambda: "scheme=" in address_of(page))
    (shown,) = decode(urlsplit(address_of(page)).query).lanes
    assert (shown.scheme, shown.depth, shown.lr) == ("post", 4, 0.003)
    page.get_by_text("The layers were recorded at few steps").wait_for()
    page.locator(".stAppHeader").get_by_text("Maps").click()
    page.wait_for_function(f"document.querySelectorAll('{CHARTS}').length == 3")
    page.locator(".stAppHeader").get_by_text("Duel").click()
    page.wait_for_selector(".st-key-live canvas")
    page.get_by_text("see at which depths and rates these train").click()
    page.wait_for_function(f"document.querySelectorAll('{CHARTS}').length == 1")
    wait_for(lambda: "init=torch" in address_of(page) and "scheme=post" in address_of(page))
    assert page.locator(".stException").count() == 0


def test_a_new_map_fills_live_and_can_be_stopped(browser: Browser, address: str) -> None:
    words = {
        "scheme": "pre,post", "depth": "1,2,3", "lr": "0.001,0.0015,0.002,0.003,0.004,0.006,0.01,0.015",
        "width": "16", "heads": "2", "seq_len": "8", "batch": "4", "steps": "1500",
    }  # fmt: skip
    small = ask(words, "depth", "lr")
    context = browser.new_context(viewport={"width": 375, "height": 800})
    page = opened(context.new_page(), f"{address}/maps?{small.query()}", 2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    press(page, "fill")

    def ended() -> int:
        words = text_now(page, ".st-key-maps .stProgress")
        return int(words.split(" of ")[0]) if " of 48 runs" in words else 0

    kept = f"[...document.querySelectorAll('{CHARTS}')].filter(c => c.dataset.old).length"

    def fills_in_place() -> bool:
        """Whether the canvases outlive the next two results: the first ones settle the colours."""
        page.evaluate(f"document.querySelectorAll('{CHARTS}').forEach(c => c.dataset.old = 1)")
        before = ended()
        wait_for(lambda: ended() >= before + 2)
        return page.evaluate(kept) == 2

    wait_for(fills_in_place)
    press(page, "stop_fill")
    page.locator(".st-key-fill button:visible").first.wait_for()
    wait_for(lambda: "stored already" in text_now(page, ".st-key-fill_row"))
    assert page.locator(".stException").count() == 0
    context.close()
