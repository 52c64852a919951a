"""What a visitor sees where the server takes no more: of pages with charts, of a text."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from browser_kit import opened
from normviz.app.views.duel.own_text import BOX
from playwright.sync_api import Browser
from websockets.sync.client import connect

from normviz import RunConfig
from normviz.links import encode

pytestmark = pytest.mark.browser

OTHER = RunConfig(task="text", text="ab" * 16)
SAID = "Charts are open on 30 pages of yours, the most at once"
TOLD = """said => { const bar = document.querySelector('.nv-lost > .nv-bar');
  return bar && bar.dataset.lost === said && bar.checkVisibility() }"""


def test_who_has_too_many_pages_is_told_so_and_gets_charts_once_one_is_closed(
    browser: Browser, address: str
) -> None:
    with ExitStack() as stack:
        page = opened(browser.new_context().new_page(), address)
        cookies = "; ".join(
            f"{one.get('name')}={one.get('value')}" for one in page.context.cookies()
        )
        numbers = f"{address.replace('http', 'ws')}/normviz/numbers"
        lines = [
            stack.enter_context(connect(numbers, additional_headers={"Cookie": cookies}))
            for _ in range(29)
        ]
        late = page.context.new_page()
        late.goto(address)
        late.wait_for_function(TOLD, arg=SAID)
        stranger = opened(browser.new_context().new_page(), address)  # who has theirs
        assert stranger.locator(".nv-lost").count() == 0
        stranger.context.close()
        lines.pop().close()
        late.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 3")
        assert late.locator(".nv-lost").count() == 0
        page.context.close()


def test_a_paste_that_is_too_long_is_not_cut(browser: Browser, address: str) -> None:
    """It leaves the box as it was, as the page says beforehand."""
    page = opened(browser.new_page(), f"{address}/?{encode([OTHER])}", charts=0)
    box = page.get_by_label("Paste a text")
    page.get_by_text("A paste of more than 1,250,000 characters leaves the box").wait_for()
    box.fill("a text before it")
    box.fill("x" * (BOX + 1))
    assert box.input_value() == "a text before it"
    box.fill("é" * BOX)  # of twice as many bytes, and told by the server
    page.locator(".st-key-use_text button").click()
    page.get_by_text("The text has 2,500,000 bytes in UTF-8, allowed are up to").wait_for()
    assert page.locator(".nv-lost").count() == 0
    page.close()
