"""The guide in a real browser: scope and answer on a phone's first screen, and the way to its duel."""

from __future__ import annotations

import pytest
from browser_kit import PATIENCE_MS, barriers, chip, wait_for
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE_MS)


def test_a_phone_shows_the_answer_first_and_leads_to_the_duel(
    browser: Browser, address: str
) -> None:
    context = browser.new_context(viewport={"width": 375, "height": 812})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/choose")
    expect(page.locator(".stExpander")).to_have_count(11)
    places = ("scope", "answer strong", "limits", "card h2")
    found = [page.locator(f".choose-{place}").first.bounding_box() for place in places]
    tops = [box["y"] for box in found if box]
    assert len(tops) == len(places) and tops == sorted(tops)
    answer = found[1]
    assert answer is not None and answer["y"] + answer["height"] < 812 / 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    table = page.locator(".choose-table")
    assert table.evaluate("it => it.scrollWidth > it.clientWidth")
    table.focus()
    page.keyboard.press("ArrowRight")
    wait_for(lambda: table.evaluate("it => it.scrollLeft") > 0)
    opened = page.locator(".stExpander", has_text="Why does the gradient reach")
    opened.locator("summary").click()
    expect(opened.locator(".katex").first).to_be_visible()
    assert barriers(page) == []
    page.get_by_role("link", name="Open these as a duel").click()
    page.wait_for_selector(".st-key-live canvas")
    wait_for(lambda: "learned" in chip(page, 0))
    assert "depth=24" in page.url and "qk_norm=head" in page.url
    assert page.locator(".stException").count() == 0
    context.close()
