"""The tour in a real browser: from the button beside the title to its last step."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from browser_kit import PATIENCE_MS, address_of, chip, opened, wait_for
from playwright.sync_api import Browser, Page

from normviz.duel.presets import PRESETS
from normviz.tour import STEPS

pytestmark = pytest.mark.browser


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def canvases(page: Page) -> int:
    return page.locator(".st-key-live canvas").count()


def stands(page: Page, number: int) -> None:
    """Wait until a step is on the page, its charts too, and answer its question."""
    step = STEPS[number - 1]
    page.locator(".st-key-story").get_by_text(step.title, exact=True).wait_for()
    if step.question:
        page.locator(".st-key-guess_1 button").wait_for()
        wait_for(lambda: canvases(page) == 0)
        page.locator(".st-key-guess_1 button").focus()
        page.keyboard.press("Enter")
        page.locator(".st-key-story").get_by_text(re.compile("^(Right|Not quite)")).wait_for()
    wait_for(lambda: canvases(page) >= 2 + len(step.lanes()))
    page.locator(".st-key-story").get_by_text(re.compile("1 seed each")).wait_for()
    wait_for(lambda: page.locator(".nv-probe").input_value() == step.probe)


def test_the_whole_tour(browser: Browser, address: str) -> None:
    """Take the tour, guess with the keyboard, go on with N, end; nothing asks another host."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    hosts: set[str | None] = set()
    errors: list[str] = []
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.on("console", lambda m: m.type == "error" and errors.append(m.text))
    opened(page, address)
    press(page, "tour")
    for number in range(1, len(STEPS) + 1):
        stands(page, number)
        wait_for(lambda n=number: f"story={n}" in address_of(page))
        # The strip leaves room for the curves: they begin in the upper two thirds.
        top = page.locator(".nv-loss").bounding_box()
        assert top is not None and top["y"] < 500
        if number < len(STEPS):
            page.keyboard.press("n")
    press(page, "story_play")
    page.locator(".st-key-tour button").first.wait_for()
    assert not errors and hosts <= {"127.0.0.1", None}
    assert page.locator(".stException").count() == 0
    page.context.close()


def test_a_preset_is_chosen_by_its_picture(browser: Browser, address: str) -> None:
    """Opened, every picture arrives; a choice closes the list and shows the finished duel."""
    page = opened(browser.new_context(viewport={"width": 1280, "height": 900}).new_page(), address)
    page.get_by_role("button", name="Presets").click()
    page.locator(".st-key-presets img").first.wait_for()
    widths = "[...document.querySelectorAll('.st-key-presets img')].map(i => i.naturalWidth)"
    wait_for(lambda: len(found := page.evaluate(widths)) == len(PRESETS) and all(found))
    page.locator(".st-key-open_no_norm button").click()
    wait_for(lambda: chip(page, 0).startswith("diverged"))
    wait_for(lambda: page.locator(".st-key-presets").count() == 0)
    page.context.close()


@pytest.mark.parametrize("number", [3, 7])
def test_a_step_fits_a_phone(browser: Browser, address: str, number: int) -> None:
    page = browser.new_context(viewport={"width": 375, "height": 740}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/?story={number}")
    stands(page, number)
    assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= 375
    cut = (
        "[...document.querySelectorAll('.st-key-story button')]"
        ".filter(e => e.getBoundingClientRect().right > 375).length"
    )
    assert page.evaluate(cut) == 0
    page.context.close()
