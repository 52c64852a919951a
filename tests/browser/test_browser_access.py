"""Every page for everybody: axe, headings, words, keys, reduced motion, and what a screen reader hears."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from browser_kit import PATIENCE_MS, barriers, becomes_dark, other_hosts, text_now, wait_for
from playwright.sync_api import Browser, Page

from normviz.catalog import WORDS

pytestmark = pytest.mark.browser
PAGES = (
    "duel", "?story=1", "?embed=true", "maps", "claims", "choose", "anatomy", "catalogue", "by-hand", "cost",
    "own-model", "runs",
)  # fmt: skip
TINY = "?v=1&lanes=1&scheme=pre&depth=2&width=16&heads=2&seq_len=8&batch=4&steps=30"
IDLE = """document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
  && document.querySelector(".page-status")"""
HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"""


def opened(page: Page, url: str) -> Page:
    page.set_default_timeout(PATIENCE_MS)
    page.goto(url)
    page.wait_for_function(IDLE)
    return page


@pytest.fixture(scope="module")
def view(browser: Browser) -> Iterator[Page]:
    """A page for all tests of this file that change nothing."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture(scope="module")
def asked(view: Page) -> list[str]:
    """Each URL that `view` asks for."""
    urls: list[str] = []
    view.on("request", lambda request: urls.append(request.url))
    view.on("websocket", lambda line: urls.append(line.url))
    return urls


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_no_heading_is_skipped_and_no_other_host_is_asked(
    view: Page, asked: list[str], address: str, name: str
) -> None:
    """In both themes; the page follows the system from one to the other."""
    view.emulate_media(color_scheme="light")
    opened(view, f"{address}/{name.removeprefix('duel')}")
    if name == "duel":
        view.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
        assert_reduced_motion_moves_nothing(view)
    if name == "maps":
        view.locator("[data-tag]:visible").first.wait_for()
    assert barriers(view) == []
    becomes_dark(view)
    assert barriers(view) == []
    levels = view.evaluate(HEADINGS)
    assert levels.count(1) == ("embed" not in name), levels
    assert levels[0] == 1 or "embed" in name, levels
    assert all(b - a <= 1 for a, b in pairwise(levels)), levels
    assert asked and not other_hosts(asked, address)
    assert view.locator(".stException").count() == 0
    if name == "maps":
        assert_a_word_opens_its_sentence_by_key(view)


def assert_reduced_motion_moves_nothing(page: Page) -> None:
    slow = """[...document.querySelectorAll(".stApp *")].filter((one) =>
      [getComputedStyle(one).transitionDuration, getComputedStyle(one).animationDuration]
        .some((words) => words.split(",").some((word) => parseFloat(word) > .001))).length"""
    assert page.evaluate(slow) == 0
    wait_for(lambda: text_now(page, ".nv-play") == "▶ Replay")  # it does not play by itself


def assert_a_word_opens_its_sentence_by_key(page: Page) -> None:
    word, sentence = page.locator(".word", has_text="nat").first, page.locator("#word-nat")
    word.focus()
    page.keyboard.press("Enter")
    sentence.wait_for()
    assert WORDS["nat"].sentence in sentence.inner_text()
    page.keyboard.press("Escape")
    sentence.wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent") == "nat"
    page.get_by_role("button", name="All words").click()
    listed = page.get_by_role("dialog", name="Words")
    listed.get_by_text(WORDS["kernel"].sentence).wait_for()


def test_a_word_opens_its_sentence_by_touch(browser: Browser, address: str) -> None:
    with browser.new_context(viewport={"width": 375, "height": 740}, has_touch=True) as phone:
        page = opened(phone.new_page(), f"{address}/maps")
        page.locator(".word", has_text="nat").first.tap()
        page.locator("#word-nat").wait_for()
        box = page.locator("#word-nat").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 375
        assert box["y"] >= 0 and box["y"] + box["height"] <= 740


def test_letters_can_be_turned_off_for_good_and_an_end_is_read_out(
    browser: Browser, address: str
) -> None:
    with browser.new_context() as context:
        page = opened(context.new_page(), f"{address}/{TINY}")
        heard = ".page-status"
        assert text_now(page, heard) == "", "nothing is read out when a page opens"
        switch = page.locator(".st-key-shortcuts input")
        assert switch.is_checked()
        letter = page.locator(".st-key-train kbd").first
        letter.wait_for()
        page.get_by_text("Keyboard shortcuts").click()
        letter.wait_for(state="detached")
        wait_for(lambda: [one for one in context.cookies() if one.get("value") == "off"])

        page.reload()
        page.wait_for_function(IDLE)
        wait_for(lambda: not switch.is_checked())
        page.locator("h1").click()
        page.keyboard.press("t")
        page.get_by_text("Keyboard shortcuts").click()
        letter.wait_for()
        assert "not trained yet" in page.locator(".st-key-card_0").inner_text()
        page.locator("h1").click()
        page.keyboard.press("t")
        wait_for(lambda: "loss" in text_now(page, heard))
        assert text_now(page, heard).startswith("A Pre-LN: learned")
