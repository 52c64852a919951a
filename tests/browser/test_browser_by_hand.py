"""The By hand page in a real browser: type into a cell, pick one, on a phone, in the dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from browser_kit import PATIENCE_MS, address_of, barriers, becomes_dark, text_now, wait_for
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(address: str) -> str:
    return f"{address}/by-hand"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that must not print errors, but for Streamlit's own: at the address of any page but the
    first it looks for its server beneath that page, and then above it."""
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    tab = context.new_page()
    errors: list[str] = []
    tab.on(
        "console",
        lambda message: (
            message.type == "error"
            and "by-hand/_stcore" not in message.location["url"]
            and errors.append(message.text)
        ),
    )
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.set_default_timeout(PATIENCE_MS)
    yield tab
    assert not errors
    context.close()


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    page.wait_for_function("document.querySelectorAll('.hand-sheet').length === 3")
    page.locator(".st-key-matrix_batchnorm .hand table").nth(1).wait_for()
    return page


def sheet(page: Page, norm: str) -> str:
    return text_now(page, f".st-key-hand_sheet_{norm} .hand-sheet")


def type_into(page: Page, row: int, text: str, taken: Callable[[], object]) -> None:
    """Into the first feature of a row of the table editor, from 0, as a person does: who sees that
    the editor, being drawn anew at that moment, has not taken it types it again."""
    for _ in range(15):
        canvas = page.locator("[class*=st-key-hand_table_] canvas").first
        if (box := canvas.bounding_box()) is None:  # it is drawn anew
            continue
        line = box["height"] / (4 + 2 + 1)
        box_of_cell = page.locator("textarea.gdg-input")
        box_of_cell.wait_for(state="detached")  # of the cell before
        page.mouse.dblclick(box["x"] + box["width"] * 0.3, box["y"] + line * (row + 1.5))
        with suppress(TimeoutError, PlaywrightTimeout):
            box_of_cell.press("ControlOrMeta+a", timeout=10_000)
            box_of_cell.press_sequentially(text, timeout=10_000)
            box_of_cell.press("Enter", timeout=10_000)
            wait_for(taken, 6)
            return
        page.keyboard.press("Escape")
    raise TimeoutError(f"the editor did not take {text!r}")


def address_holds(page: Page, words: str) -> None:
    page.wait_for_function(f"decodeURIComponent(location.search).includes('{words}')")


def test_what_is_typed_is_worked_out_and_what_is_no_number_is_said(
    page: Page, address: str
) -> None:
    opened(page, address)
    assert "(1 + 2 + 3 + 6) / 4 = 3" in sheet(page, "layernorm")
    type_into(page, 0, "9", lambda: "(9 + 2 + 3 + 6) / 4 = 5" in sheet(page, "layernorm"))
    address_holds(page, "x=9,2,3,6;2")
    complaint = page.get_by_text("Row 2, feature 1 is 'two': write a number")
    type_into(page, 1, "two", complaint.count)
    assert "(9 + 2 + 3 + 6) / 4 = 5" in sheet(page, "layernorm")
    type_into(page, 1, "2,5", lambda: "2.5" in address_of(page))
    address_holds(page, "x=9,2,3,6;2.5,0")
    wait_for(lambda: page.get_by_text("write a number").count() == 0)


def test_a_click_on_a_number_looks_at_it(page: Page, address: str) -> None:
    opened(page, address)
    page.locator(".st-key-matrix_batchnorm td[data-at='3,2']").first.click()
    wait_for(lambda: "(2 + 0 + 4 − 2) / 4 = 1" in sheet(page, "batchnorm"))
    address_holds(page, "row=3&feature=2")
    outlined = page.locator(".st-key-matrix_layernorm td.outlined")
    assert [one.get_attribute("data-at") for one in outlined.all()] == [
        f"3,{f}" for f in (1, 2, 3, 4)
    ]
    down = page.locator(".st-key-matrix_batchnorm td.outlined")
    assert [one.get_attribute("data-at") for one in down.all()] == [f"{r},2" for r in (1, 2, 3, 4)]


def test_a_changed_neighbour_moves_rows_through_batchnorm_alone(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_text("Change a neighbour", exact=True).click()
    page.get_by_text("have seen the future").or_(page.get_by_text("has seen the future")).wait_for()

    def moved(norm: str) -> set[str]:
        marked = page.locator(f".st-key-matrix_{norm} table").nth(1).locator("td.marked").all()
        return {(one.get_attribute("data-at") or "")[0] for one in marked}

    wait_for(lambda: moved("batchnorm") == {"1", "2", "3", "4"})
    wait_for(lambda: moved("layernorm") == moved("rmsnorm") == {"2"})
    page.get_by_text("One outlier", exact=True).click()
    wait_for(lambda: "60" in sheet(page, "layernorm"))


def test_a_phone_cuts_nothing_off_and_axe_finds_nothing_serious(
    browser: Browser, address: str
) -> None:
    with browser.new_context(viewport={"width": 375, "height": 740}) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        opened(page, address)
        page.get_by_text("Six by eight", exact=True).click()
        wait_for(lambda: "/ 8 =" in sheet(page, "layernorm"))
        assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= 375
        for table in page.locator(".hand table").all():
            box = table.bounding_box()
            assert box and box["x"] + box["width"] <= 375
        assert barriers(page) == []
        becomes_dark(page)
        assert barriers(page) == []
        assert page.locator(".stException").count() == 0
