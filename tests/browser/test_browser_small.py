"""Small faults of the pages that only a browser shows: where a page begins, and a replay in the dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, opened, wait_for
from playwright.sync_api import Browser, Page

from normviz import player
from normviz.claims import CLAIMS

pytestmark = pytest.mark.browser

TOP = "document.querySelector('.stMain').scrollTop"


def scroll_down(page: Page) -> None:
    page.evaluate("document.querySelector('.stMain').scrollTo(0, 700)")
    wait_for(lambda: page.evaluate(TOP) > 100)


def test_another_page_and_back_begin_at_their_top(browser: Browser, address: str) -> None:
    page = opened(browser.new_context(viewport={"width": 1280, "height": 720}).new_page(), address)
    scroll_down(page)
    page.locator(".st-key-try_0 button").click()
    page.wait_for_url("**v=1*")
    page.wait_for_function("history.length > 2")  # the entry may come after its query
    scroll_down(page)
    page.evaluate("history.back()")
    wait_for(lambda: page.evaluate(TOP) == 0)
    page.get_by_role("link", name="Claims", exact=True).first.click()
    last = [claim.key for claim in CLAIMS if claim.arms and not claim.lab][-1]
    row = page.locator(f".st-key-open_{last} button")
    row.wait_for(timeout=PATIENCE_MS)
    scroll_down(page)
    row.click()
    page.get_by_role("button", name="runs in the duel").click()
    page.wait_for_selector(".st-key-copy_link button", timeout=PATIENCE_MS)
    wait_for(lambda: page.evaluate(TOP) == 0)
    page.context.close()


def test_a_replay_stays_light_in_the_dark(browser: Browser, tmp_path: Path) -> None:
    page = browser.new_context(color_scheme="dark").new_page()
    file = tmp_path / "replay.html"
    file.write_text(player.document("t", ""))
    page.goto(file.as_uri())
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    page.context.close()
