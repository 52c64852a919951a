"""The Runs page in a real browser, at a desk and on a phone: train, find, reopen live, compare, delete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, chip, server, text_now, wait_for
from playwright.sync_api import Browser, Page
from shelf_kit import SMALL, kept

from normviz.runs.store import Query, Store

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with server(folder) as (url, _):
        yield url


def choose(page: Page, run: int) -> None:
    """With the keyboard alone."""
    page.locator(f".st-key-pick_{run} input").press("Space")


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


@pytest.mark.parametrize("width", [1280, 375])
def test_from_training_to_deletion(
    browser: Browser, address: str, folder: Path, width: int
) -> None:
    other = kept(Store(folder), SMALL.replace(scheme="peri"))
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{address}/?v=1&lanes=1&scheme=pre&depth=48&steps=20000&init_seed={width}")
    press(page, "train")
    wait_for(lambda: chip(page, 0) == "training")
    if width < 641:
        page.locator(".sheet summary").click()
    page.get_by_text("Earlier runs").click()

    page.locator(".st-key-run_rows").get_by_text(
        "of 20000 steps"
    ).wait_for()  # it goes on meanwhile
    mine = Store(folder).listed(Query(), 1).runs[0].id
    choose(page, mine)
    assert page.locator(".st-key-delete_chosen button:visible").is_disabled()
    press(page, "stop_chosen")
    page.locator(f".st-key-run_row_{mine}").get_by_text("stopped after").wait_for()
    choose(page, other)
    page.get_by_role("row", name="placement Pre-LN Peri-LN").wait_for()
    assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= width
    press(page, "reopen")
    page.wait_for_selector(".st-key-live canvas")
    wait_for(lambda: chip(page, 0).startswith("stopped after") and "learned" in chip(page, 1))

    page.go_back()
    page.wait_for_selector(".st-key-chosen")
    choose(page, other)
    wait_for(lambda: page.locator(".st-key-delete_chosen button:visible").is_enabled())
    press(page, "delete_chosen")
    press(page, "delete_sure")
    page.get_by_text("Deleted 1 run.").wait_for()
    assert page.locator(f".st-key-run_row_{mine}").count() == 0
    assert Store(folder).run(mine) is None
    assert text_now(page, ".stException") == ""
    page.close()
