"""The page behind the container's proxy, in a real browser: it works, and breaks no rule of the proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, chip, files_at, opened, wait_for
from live_kit import put_live_page
from playwright.sync_api import Browser, Page
from proxy_kit import proxied

from normviz import RunConfig
from normviz.links import encode

pytestmark = pytest.mark.browser
VIEWS = ("maps", "anatomy", "by-hand", "runs")
SHORT = RunConfig(depth=3, steps=60, lr=2e-3)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("proxy")
    put_live_page(folder / "data" / "live")
    with proxied(folder) as (url, _):
        yield url


@pytest.fixture
def elsewhere(address: str, tmp_path: Path) -> Iterator[str]:
    """A page of another site that shows the charts in a frame."""
    frame = f'<iframe src="{address}/?embed=true" width="1200" height="800"></iframe>'
    (tmp_path / "index.html").write_text(f"<!doctype html><title>Blog</title>{frame}")
    with files_at(tmp_path) as site:
        yield f"{site.replace('127.0.0.1', 'localhost')}/"


def broken(said: list[str]) -> list[str]:
    """What is wrong; not that Streamlit's page asks for the server's address below its own first."""
    return [one for one in said if not re.match("Failed to load resource: .* 404", one)]


@pytest.fixture
def tab(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A tab, and what its console says of errors and broken rules."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    said: list[str] = []
    page.on("console", lambda it: it.type == "error" and said.append(it.text))
    page.on("pageerror", lambda it: said.append(str(it)))
    yield page, said
    page.context.close()


def test_every_page_works_and_breaks_no_rule(tab: tuple[Page, list[str]], address: str) -> None:
    """A run trains while its charts move, the tour plays, and a chart is saved."""
    page, said = tab
    opened(page, address)
    opened(page, f"{address}/?{encode([SHORT, SHORT.replace(scheme='post')])}", charts=0)
    page.click(".st-key-train button")
    wait_for(lambda: chip(page, 0) and "canvas" in page.locator(".st-key-live").inner_html())
    wait_for(lambda: page.locator(".st-key-live canvas").count() >= 3)
    for name in VIEWS:
        page.goto(f"{address}/{name}")
        page.wait_for_selector(".stMain h1")
        page.wait_for_function(
            "document.querySelector('.stApp').dataset.testScriptState === 'notRunning'"
        )
    opened(page, f"{address}/?story=1", charts=0)
    page.locator(".st-key-story").get_by_text("1 seed each").wait_for()
    assert page.locator(".stException").count() == 0
    assert broken(said) == []


def test_the_page_that_trains_in_the_browser_breaks_no_rule(
    tab: tuple[Page, list[str]], address: str
) -> None:
    """WebAssembly, and workers of a blob."""
    page, said = tab
    page.goto(f"{address}/normviz/live/live.html?v=1&scheme=pre,post&depth=2&steps=25")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Both lanes were trained on this device.").wait_for()
    wait_for(lambda: page.locator(".nv canvas").count() >= 3)
    page.get_by_role("link", name="Open them there").click()
    page.wait_for_url(f"{address}/?v=1&scheme=pre,post&depth=2&steps=25")
    page.locator(".st-key-train button").first.wait_for()
    assert broken(said) == []


def test_another_site_may_embed_the_charts(
    tab: tuple[Page, list[str]], elsewhere: str, address: str
) -> None:
    page, said = tab
    page.goto(elsewhere)
    inside = page.frame_locator("iframe")
    inside.locator(".st-key-live canvas").first.wait_for()
    wait_for(lambda: inside.locator(".st-key-live canvas").count() >= 3)
    assert broken(said) == []
