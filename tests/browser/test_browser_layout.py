"""What the first screen holds, in pixels: duel and tour, at a laptop and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from browser_kit import BACKGROUND, PATIENCE_MS, becomes_dark, chip, opened, wait_for
from playwright.sync_api import Browser, Page

from normviz.tour import STEPS

pytestmark = pytest.mark.browser

LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 375, "height": 812}
SEEN = 24
"""Pixels of a heatmap that are enough to see that there is more below."""
CUT = """[...document.querySelectorAll('.stMain button, .stMain canvas')]
    .filter(e => e.getBoundingClientRect().right > 375).length"""

COVERED = """[...document.querySelectorAll('.stMain .stMarkdown :is(h1, h2, h3)')].filter((heading) => {
    let part = heading.closest('.stElementContainer');
    while (part && !part.nextElementSibling) part = part.parentElement.closest('.stMain *');
    const here = heading.getBoundingClientRect(), next = part?.nextElementSibling.getBoundingClientRect();
    return next?.height && next.left < here.right && next.top < here.bottom;
}).map((heading) => heading.textContent)"""
"""Headings of which the element below covers a part."""


@contextmanager
def tab(browser: Browser, size: dict[str, int], address: str, charts: int = 4) -> Iterator[Page]:
    with browser.new_context(viewport=size) as context:  # pyright: ignore[reportArgumentType]
        page = opened(context.new_page(), address, charts)
        wait_for(
            lambda: not charts or page.locator(".nv-loss canvas, .nv-bars canvas").count() == 2
        )
        yield page


def box(page: Page, selector: str) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of the first visible match."""
    found = page.locator(f"{selector} >> visible=true").first.bounding_box()
    assert found is not None, selector
    return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]


def bottom(page: Page, selector: str) -> float:
    return box(page, selector)[3]


def visible(page: Page, name: str) -> list[str]:
    """The visible buttons of a name, of Streamlit and of the player."""
    buttons = page.locator("button:visible").all_inner_texts()
    return [words for words in buttons if name in words.split()]


def test_a_laptop_shows_the_whole_duel_on_its_first_screen(browser: Browser, address: str) -> None:
    with tab(browser, LAPTOP, address) as page:
        assert bottom(page, "[data-testid=stHeaderLogo], [data-testid=stLogo]") < 60
        assert (
            page.locator("h1")
            .inner_text()
            .startswith("Pre-LN learned, Post-LN is at chance so far.")
        )
        rows = [box(page, f".st-key-card_{lane}") for lane in (0, 1)]
        assert all(low - top < 50 for _, top, _, low in rows)
        wait_for(lambda: max(bottom(page, ".nv-loss"), bottom(page, ".nv-bars")) <= 720)
        assert box(page, ".nv-heat0")[1] <= 720 - SEEN
        train, replay = box(page, ".st-key-train button"), box(page, ".nv-play")
        assert abs(train[1] - replay[1]) < 12  # one row
        words = page.locator(".st-key-train button p").first
        words.evaluate("p => { p.closest('button').disabled = true; }")
        wait_for(lambda: words.evaluate("p => getComputedStyle(p).color") != "rgb(255, 255, 255)")
        words.evaluate("p => { p.closest('button').disabled = false; }")
        page.locator(".nv-play").click()
        wait_for(lambda: len(visible(page, "Pause")) == 1)
        assert not visible(page, "Step")

        glyph = "document.querySelector('.st-key-card_1 .glyph').src"
        before = page.evaluate(glyph)
        page.locator(".st-key-lane1_scheme").get_by_text("Peri-LN", exact=True).click()
        wait_for(lambda: page.evaluate(glyph) != before)
        page.locator(".st-key-lane1_open button:visible").get_by_text("B Peri-LN").wait_for()
        assert_every_placement_is_in_a_list_that_is_wide_enough(page)


def assert_every_placement_is_in_a_list_that_is_wide_enough(page: Page) -> None:
    page.locator(".st-key-lane1_open button:visible").first.click()
    last = page.locator("[class*='st-key-lane1_to_'] button:visible")
    wait_for(lambda: last.count() >= 46)
    clipped = """[...document.querySelectorAll("[class*='st-key-lane1_to_'] button p")]
        .filter(p => p.scrollWidth > p.clientWidth + 1).length"""
    assert page.evaluate(clipped) == 0
    left, _, right, _ = box(page, ".st-key-lane1_sheet")
    assert right - left > 500
    page.locator(".st-key-lane1_to_resp button:visible").first.click()
    wait_for(lambda: page.locator(".st-key-lane1_sheet:visible").count() == 0)
    page.wait_for_url("**scheme=pre%2Cresp*")


@pytest.mark.parametrize("size", [LAPTOP, PHONE])
@pytest.mark.parametrize("path", ["by-hand", "anatomy", "runs"])
def test_nothing_covers_a_heading(
    browser: Browser, address: str, path: str, size: dict[str, int]
) -> None:
    with browser.new_context(viewport=size) as context:  # pyright: ignore[reportArgumentType]
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{address}/{path}")
        page.locator(".st-key-page_foot").wait_for()
        wait_for(lambda: page.locator(".stMain h1").count() == 1)
        assert page.evaluate(COVERED) == []


def test_four_lanes_open_at_the_top_of_the_page_with_their_charts(
    browser: Browser, address: str
) -> None:
    """Four shipped results: nothing scrolls by itself; loss and bars are whole."""
    with tab(browser, LAPTOP, f"{address}/?v=1&scheme=pre,post,peri,deepnorm", 6) as page:
        wait_for(lambda: max(bottom(page, ".nv-loss"), bottom(page, ".nv-bars")) <= 720)
        assert page.evaluate("document.querySelector('.stMain').scrollTop") == 0
        assert box(page, "h1")[3] - box(page, "h1")[1] < 50  # one line
        train, lanes = box(page, ".st-key-by_itself"), page.get_by_role("link", name="Earlier runs")
        found = lanes.bounding_box()
        assert found and abs(found["y"] + found["height"] / 2 - (train[1] + train[3]) / 2) < 4


def test_a_step_of_the_tour_is_on_one_screen_and_parks(browser: Browser, address: str) -> None:
    step = STEPS[3]
    with tab(browser, LAPTOP, f"{address}/?story=4") as page:
        wait_for(lambda: max(bottom(page, ".nv-loss"), bottom(page, ".nv-bars")) <= 720)
        assert box(page, ".nv-heat0")[1] <= 720 - SEEN
        assert bottom(page, ".st-key-story") < box(page, ".nv-loss")[1]
        assert not page.locator(".st-key-train, .st-key-knobs").count()
        at = page.locator(".nv-step output")
        wait_for(lambda: at.inner_text() == str(step.at))
        page.locator(".st-key-story a").get_by_text("step 30").click()
        wait_for(lambda: at.inner_text() == "30")


def test_a_phone_shows_verdicts_chart_and_train(browser: Browser, address: str) -> None:
    """Nothing is cut off to the right, the knobs are in a sheet, colours follow the system's theme."""
    with tab(browser, PHONE, address) as page:
        assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= 375
        assert page.evaluate(CUT) == 0
        for lane in (0, 1):
            _, top, right, low = box(page, f".st-key-card_{lane}")
            assert low - top < 60 and right <= 375 and chip(page, lane)
            badge = page.locator(f".st-key-card_{lane} .stMarkdownBadge")
            assert badge.evaluate("it => it.scrollWidth <= it.clientWidth + 1"), "the whole verdict"
        _, dock, _, end = box(page, ".st-key-train button")
        assert end <= 812
        wait_for(lambda: bottom(page, ".nv-loss") <= dock)
        assert bottom(page, "[data-testid=stHeaderLogo], [data-testid=stLogo]") < 60
        for lane in "AB":
            assert dock - 4 <= box(page, f"[class*='_open'] button:has-text('{lane} P')")[1]
        assert not page.locator(".st-key-knobs").is_visible()
        page.locator(".sheet summary").click()
        page.locator(".st-key-knob_depth").wait_for()
        assert page.evaluate(CUT) == 0
        page.locator(".sheet summary").click()
        page.locator(".st-key-knobs").wait_for(state="hidden")

        page.locator(".nv-tabs button[value=time]").click()
        page.locator(".nv-heat0").wait_for()
        assert not page.locator(".nv-loss").is_visible()
        light = red(page)
        becomes_dark(page)
        assert red(page) < 60 < light


def red(page: Page) -> int:
    """The red of the page's background, up to 255."""
    return int(page.evaluate(BACKGROUND).split("(")[1].split(",")[0])


def test_train_shows_its_effect_on_a_phone(browser: Browser, address: str) -> None:
    """From the lower end of the page: the curves come into view, and a status above the button."""
    with tab(browser, PHONE, f"{address}/?v=1&lanes=1&scheme=post&steps=20000", charts=0) as page:
        page.evaluate("document.querySelector('.stMain').scrollTo(0, 1e5)")
        page.locator(".sheet summary").click()
        page.locator(".st-key-train button:visible").first.click()
        page.locator(".nv-progress span").wait_for()
        page.locator(".st-key-knobs").wait_for(state="hidden")
        wait_for(lambda: "steps" in page.locator(".nv-progress span").inner_text())
        assert 0 < bottom(page, ".nv-progress") <= box(page, ".st-key-stop button")[1]
        wait_for(lambda: 0 <= box(page, ".nv-loss")[1] < 500)
        page.locator(".st-key-stop button:visible").first.click()
        wait_for(lambda: chip(page, 0).startswith("stopped after"))


@pytest.mark.parametrize("number", [2, 8])
def test_the_tours_text_is_beside_its_chart_on_a_phone(
    browser: Browser, address: str, number: int
) -> None:
    with tab(browser, PHONE, f"{address}/?story={number}") as page:
        wait_for(lambda: bottom(page, ".nv-bars") <= box(page, ".st-key-story")[1])
        assert box(page, ".nv-bars")[1] > 0 and bottom(page, ".st-key-story") <= 813
        _, top, _, low = box(page, ".st-key-story p")
        assert top < low <= 812
