"""Back and Forward in a real browser: each duel that a visitor saw comes back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser_kit import PATIENCE_MS, chip, opened, wait_for
from playwright.sync_api import Browser, Page

from normviz.catalog import SCHEMES
from normviz.duel.names import lane_name
from normviz.duel.presets import PRESETS
from normviz.links import decode, encode
from normviz.tour import STEPS

pytestmark = pytest.mark.browser
IDLE = "document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'"


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """One tab for all tests of this file."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        yield context.new_page()


@pytest.fixture
def page(tab: Page, address: str) -> Page:
    """The tab at the opening duel, to which each test comes back, once no script runs that may
    still draw a slider anew."""
    if tab.url == "about:blank" or not shows(tab, PRESETS["hero"].lanes()):
        opened(tab, address)
    tab.wait_for_function(IDLE)
    return tab


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def names(page: Page) -> list[str]:
    """The lanes' names, "A Pre-LN"; a wide page shows them in the buttons beside."""
    return page.locator(".stMain .lane-name").all_text_contents()


def shows(page: Page, lanes: Any) -> bool:
    """Whether cards and address are of these lanes; the hero's address may say nothing."""
    query = page.evaluate("location.search")
    said = decode(query).lanes if query else PRESETS["hero"].lanes()
    expected = [" ".join(lane_name(i, lane, lanes).split()) for i, lane in enumerate(lanes)]
    return names(page)[: len(lanes)] == expected and list(said) == list(lanes)


def back(page: Page) -> None:
    page.evaluate("history.back()")


def length(page: Page) -> int:
    return page.evaluate("navigation.entries().length")


def length_here(page: Page) -> int:
    """The length of the history without the entries that Forward leads to; a new one replaces those."""
    return page.evaluate("navigation.currentEntry.index + 1")


def test_every_duel_comes_back(page: Page) -> None:
    """Hero, Peri-LN, a preset, two steps of the tour; Back four times, and Forward."""
    hero = PRESETS["hero"].lanes()
    peri = (hero[0], hero[1].replace(scheme="peri"))
    warmup = PRESETS["warmup"].lanes()
    begin = length_here(page)
    page.locator(".st-key-lane1_scheme").get_by_text("Peri-LN", exact=True).click()
    wait_for(lambda: shows(page, peri))
    page.get_by_role("button", name="Presets").click()
    press(page, "open_warmup")
    wait_for(lambda: shows(page, warmup))
    press(page, "tour")
    wait_for(lambda: shows(page, STEPS[0].lanes()))
    press(page, "story_next")
    wait_for(lambda: shows(page, STEPS[1].lanes()))
    page.locator(".st-key-story").get_by_text(STEPS[1].title, exact=True).wait_for()
    wait_for(lambda: length(page) == begin + 4)
    back(page)
    page.locator(".st-key-story").get_by_text(STEPS[0].title, exact=True).wait_for()
    wait_for(lambda: shows(page, STEPS[0].lanes()))
    for lanes in (warmup, peri, hero):
        back(page)
        wait_for(lambda lanes=lanes: shows(page, lanes))
        assert page.locator(".st-key-story").count() == 0
    assert "learned" in chip(page, 0)
    wait_for(lambda: length(page) == begin + 4)
    page.evaluate("history.forward()")
    wait_for(lambda: shows(page, peri))
    back(page)
    wait_for(lambda: shows(page, hero))
    assert page.locator(".stException").count() == 0


def test_a_duel_that_was_shown_from_stored_results_comes_back(page: Page) -> None:
    """Two turns of the switch, each with a stored result, and Back through both."""
    hero, begin = PRESETS["hero"].lanes(), length_here(page)
    peri, deepnorm = ((hero[0], hero[1].replace(scheme=key)) for key in ("peri", "deepnorm"))
    for turned, lanes in enumerate((peri, deepnorm), 1):
        label = SCHEMES.label(lanes[1].scheme)
        page.locator(".st-key-lane1_scheme").get_by_text(label, exact=True).click()
        wait_for(lambda lanes=lanes: shows(page, lanes) and "learned" in chip(page, 1))
        wait_for(lambda turned=turned: length(page) == begin + turned)
    for lanes in (peri, hero):
        back(page)
        wait_for(lambda lanes=lanes: shows(page, lanes))
    assert page.locator(".stException").count() == 0


def test_a_slider_that_is_moved_on_replaces_its_entry_and_what_was_trained_is_kept(
    page: Page, address: str
) -> None:
    """With a seed of its own, and nothing trains by itself: a value on the way with a result is kept too."""
    hero = tuple(lane.replace(init_seed=77) for lane in PRESETS["hero"].lanes())
    opened(page, f"{address}/?{encode(hero)}", charts=0)
    page.locator(".st-key-by_itself label").click()
    wait_for(lambda: page.locator(".st-key-by_itself input:not(:checked)").count())
    page.wait_for_function(IDLE)
    begin = length_here(page)
    slider = page.locator(".st-key-knob_steps input[type=range]")

    def steps(left: int, expected: int) -> tuple[Any, ...]:
        for _ in range(left):
            slider.focus()
            page.keyboard.press("ArrowLeft")
        lanes = tuple(lane.replace(steps=expected) for lane in hero)
        wait_for(lambda: shows(page, lanes))
        return lanes

    short = steps(3, 50)
    wait_for(lambda: length(page) == begin + 1)
    press(page, "train")
    wait_for(lambda: all("loss" in chip(page, lane) for lane in (0, 1)))
    steps(1, 20)
    wait_for(lambda: length(page) == begin + 2)
    back(page)
    wait_for(lambda: shows(page, short))
    wait_for(lambda: all("loss" in chip(page, lane) for lane in (0, 1)))
    back(page)
    wait_for(lambda: shows(page, hero))
    assert page.locator(".stException").count() == 0


def test_back_from_another_page_leads_to_the_duel_and_stops_nothing(page: Page) -> None:
    slider = page.locator(".st-key-knob_steps input[type=range]")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    hero = tuple(lane.replace(steps=150) for lane in PRESETS["hero"].lanes())
    wait_for(lambda: shows(page, hero))
    press(page, "train")
    wait_for(lambda: all("loss" in chip(page, i) or chip(page, i) == "training" for i in (0, 1)))
    page.get_by_role("link", name="Claims").first.click()
    page.get_by_role("heading", name="claims about norm placement").wait_for(timeout=PATIENCE_MS)
    back(page)
    wait_for(lambda: shows(page, hero))
    wait_for(lambda: all("loss" in chip(page, lane) for lane in (0, 1)))
    assert page.locator(".stException").count() == 0
