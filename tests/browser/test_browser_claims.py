"""The Claims page in a real browser: open a claim, run a cheap one, follow its link into the duel."""

from __future__ import annotations

import pytest
from browser_kit import PATIENCE_MS, barriers
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser
expect.set_options(timeout=PATIENCE_MS)


def test_open_a_claim_run_it_and_see_its_duel(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/claims")
    page.locator(".st-key-claim_search input").fill("192 norm operations")
    page.keyboard.press("Enter")
    expect(page.locator("[class*='st-key-claim_row_']")).to_have_count(1)
    spark = page.locator(".st-key-claim_row_E15 img")
    expect(spark).to_have_js_property("complete", True)
    assert spark.evaluate("it => it.naturalWidth") > 0
    page.locator(".st-key-open_E15 button").click()
    card = page.locator(".st-key-claim_E15")
    expect(card).to_contain_text("fixed before it was run")
    expect(page.locator(".st-key-claim_E15 .stVegaLiteChart canvas")).to_have_count(1)
    page.locator(".st-key-run_E15 button").click()
    expect(card).to_contain_text("On this server: holds in part (1 of 3 parts true, 2 false)")
    assert "claim=E15" in page.url
    page.locator(".st-key-duel_E15 button").click()
    page.wait_for_url("**/?**")
    expect(page.locator("[class*='st-key-card_']")).to_have_count(3)
    expect(page.locator("body")).to_contain_text("Sandwich-LN")
    page.close()


def test_a_phone_shows_a_claim_that_everybody_can_read(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 800})
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/claims?claim=C1")
    expect(page.locator(".st-key-claim_C1 .stVegaLiteChart canvas")).to_have_count(1)
    assert barriers(page) == []
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 375
    page.locator(".st-key-claim_contents a", has_text="warm-up").click()
    page.wait_for_function(
        "Math.abs(document.getElementById('warmup').getBoundingClientRect().top) < 200"
    )
    expect(page.locator(".st-key-claim_C1")).to_be_visible()  # a jump opens and closes nothing
    page.close()
