"""The Anatomy page in a real browser: another depth, and the curves of that depth appear."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser_kit import PATIENCE_MS, address_of, text_now, wait_for
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def opened(page: Page, address: str) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('.st-key-measured canvas').length >= 3")
    return page


def measured(page: Page) -> str:
    return text_now(page, ".st-key-measured")


def test_another_depth_brings_new_curves(browser: Browser, address: str) -> None:
    page = opened(browser.new_page(), f"{address}/anatomy?lanes=2&scheme=keel,post&depth=6")
    wait_for(lambda: "6 blocks of width 32, first batch" in measured(page))
    page.locator(".st-key-anatomy_depth input[type=range]").press("ArrowRight")
    wait_for(lambda: "7 blocks of width 32, first batch" in measured(page))
    assert page.locator(".st-key-measured canvas").count() == 3
    wait_for(lambda: "depth=7" in address_of(page))
    assert page.locator(".stException").count() == 0
    page.close()


def test_from_the_duel_to_its_anatomy_the_catalogue_and_back(
    browser: Browser, address: str
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 3")
    page.get_by_text("Why: where the norm sits").click()
    page.get_by_text("Anatomy of A Pre-LN and B Post-LN").click()
    wait_for(lambda: "12 blocks of width 32, first batch" in measured(page))
    assert "scheme=pre%2Cpost" in page.url
    page.locator(".st-key-train_these button:visible").first.click()
    # Shipped: its result is there at once.
    page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 3")
    wait_for(lambda: "at chance so far" in text_now(page, ".st-key-card_1"))
    wait_for(lambda: "scheme=pre%2Cpost" in address_of(page) and "anatomy" not in address_of(page))
    page.locator(".stAppHeader").get_by_text("Catalogue").click()
    page.locator(".st-key-search input").fill("LayerNorm Scaling, learned")
    page.locator(".st-key-search input").press("Enter")
    page.get_by_text("Anatomy of LayerNorm Scaling, learned").click()
    page.get_by_text("A LayerNorm Scaling, learned", exact=True).first.wait_for()
    page.wait_for_url("**scheme=lns_learned*")
    page.locator(".stAppHeader").get_by_text("Duel").click()
    page.wait_for_selector(".st-key-live canvas")
    assert page.locator(".stException").count() == 0
    page.close()


@pytest.fixture(scope="module")
def phone(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 375, "height": 740}) as context:
        yield context.new_page()


@pytest.mark.parametrize("path", ["anatomy?scheme=normformer,hybridnorm&lanes=2", "catalogue"])
def test_a_phone_cuts_nothing_off(phone: Page, address: str, path: str) -> None:
    page = phone
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/{path}")
    page.wait_for_selector("canvas")
    assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= 375
    title, header = (page.locator(at).first.bounding_box() for at in ("h1", ".stAppHeader"))
    assert title and header and title["y"] >= header["y"] + header["height"]
