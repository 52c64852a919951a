"""A shared server behind the container's proxy, in headless Chromium: all works, and no rule is broken."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, files_at, from_menu, opened, wait_for
from live_kit import put_live_page
from playwright.sync_api import Browser, Page
from proxy_kit import proxied

from normviz import RunConfig
from normviz.links import encode
from normviz.runs import Run
from normviz.runs.store import Store

pytestmark = pytest.mark.browser
LONG = RunConfig(steps=20_000, lr=1e-4)
"""Some minutes."""
SHORTER_GRACE = """
from dataclasses import replace
from normviz import policy
from normviz.app.session import open_pages
open_pages.BEAT_SECONDS = 1.0
policy.SHARED = replace(policy.SHARED, grace=8.0, seconds=6000.0, steps=20_000)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """A hosted server, with a grace period that a test can wait for."""
    put_live_page(folder / "data" / "live")
    (folder / "sitecustomize.py").write_text(SHORTER_GRACE)
    path = f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with proxied(folder, PYTHONPATH=path) as (url, _):
        yield url


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab that must print no error: a broken rule is one. Streamlit's page asks for the server's address
    below its own first, and is told 404."""
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        tab = context.new_page()
        tab.set_default_timeout(PATIENCE_MS)
        said: list[str] = []
        tab.on("console", lambda it: it.type == "error" and said.append(it.text))
        tab.on("pageerror", lambda it: said.append(str(it)))
        yield tab
        assert [it for it in said if not re.match("Failed to load resource: .* 404", it)] == []
        assert tab.locator(".stException").count() == 0


def test_no_page_breaks_a_rule_of_the_proxy(page: Page, address: str, tmp_path: Path) -> None:
    """The page that trains, charts that move while a run trains, a page of charts and one of components, a
    frame of another site."""
    page.goto(f"{address}/normviz/live/live.html?v=1&scheme=pre,post&depth=2&steps=25")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Both lanes were trained on this device.").wait_for()
    page.get_by_role("link", name="Open them there").click()
    page.wait_for_url(f"{address}/?v=1&scheme=pre,post&depth=2&steps=25")
    page.click(".st-key-train button")
    wait_for(lambda: page.locator(".st-key-live canvas").count() >= 3)
    page.goto(f"{address}/cost")  # an address of earlier releases
    page.wait_for_url(f"{address}/choose*")
    page.locator(".stVegaLiteChart canvas").first.wait_for()
    from_menu(page, "Learn", "By hand")
    page.locator(".st-key-hand_sheet_batchnorm .hand-sheet").wait_for()

    frame = f'<iframe src="{address}/?embed=true" width="1200" height="800"></iframe>'
    (tmp_path / "index.html").write_text(f"<!doctype html><title>Blog</title>{frame}")
    with files_at(tmp_path) as elsewhere:
        page.goto(elsewhere)
        inside = page.frame_locator("iframe")
        wait_for(lambda: inside.locator(".st-key-live canvas").count() >= 3)


def test_a_run_is_its_visitors_and_goes_on_while_anybody_has_it_open(
    page: Page, browser: Browser, address: str, folder: Path
) -> None:
    store, link = Store(folder / "data"), f"{address}/?{encode([LONG])}"

    def record() -> Run:
        found = store.latest(LONG.key)
        assert found is not None
        return found

    with browser.new_context() as mine:
        owner = opened(mine.new_page(), link, charts=0)
        owner.click(".st-key-train button")
        wait_for(lambda: store.latest(LONG.key) and len(store.steps(record()).step) > 2)
        run = record()
        (cookie,) = (one for one in mine.cookies() if one.get("name", "").startswith("normviz_"))
        assert run.visitor == cookie.get("value", "").partition(".")[0]
        assert cookie.get("httpOnly")
        owner.locator(".st-key-copy_link button").click()
        wait_for(lambda: record().linked)

        opened(page, link)
        assert page.locator(".st-key-stop button:visible").first.is_disabled()
        page.click(".st-key-train button")
        page.wait_for_timeout(500)
        assert record().id == run.id  # joined, not queued again
        owner.reload()  # the same visitor, another session
        owner.wait_for_selector(".st-key-stop button:not([disabled])")
        # So that it takes no core while all wait. A click by the mouse may wait for a frame for minutes where
        # two pages draw a run on two cores.
        owner.locator(".st-key-pause button").evaluate("button => button.click()")
        wait_for(lambda: record().status == "paused")
    page.wait_for_timeout(10_000)  # more than the grace period
    assert record().status == "paused"
    page.goto("about:blank")
    wait_for(lambda: record().status == "stopped")
    assert record().message == "nobody had it open any more"
