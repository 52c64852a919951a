"""The first paint in a real browser: a still of the charts, until the charts are there."""

from __future__ import annotations

import urllib.request

import pytest
from browser_kit import PATIENCE_MS, SEEN, opened, wait_for
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
STILL = "#nv-still svg:visible"


@pytest.fixture(scope="module")
def warm(address: str) -> str:
    """The server, once it has drawn the still of its first page."""
    wait_for(lambda: b'id="nv-still"' in urllib.request.urlopen(address, timeout=30).read())
    return address


def with_still(page: Page, address: str) -> None:
    """Open a page as it is served with a still, which a busy server leaves out."""

    def has_it() -> bool:
        answer = page.goto(address, wait_until="commit", timeout=PATIENCE_MS)
        return answer is not None and 'id="nv-still"' in answer.text()

    wait_for(has_it)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_still_is_seen_without_any_script_of_streamlit(
    browser: Browser, warm: str, scheme: str
) -> None:
    page = browser.new_context(
        color_scheme=scheme, viewport={"width": 375, "height": 812}
    ).new_page()
    page.route("**/static/js/**", lambda route: route.abort())
    with_still(page, warm)
    wait_for(lambda: page.locator(STILL).count() == 4)
    assert page.title() == "Pre-LN against Post-LN · NormViz"
    assert "at chance so far" in page.locator("#nv-still p").nth(1).inner_text()
    paper = page.locator("#nv-still").evaluate("(it) => getComputedStyle(it).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(23, 22, 20)")
    first = page.locator(STILL).first.bounding_box()
    assert first and first["y"] + first["height"] < 812 and first["x"] + first["width"] <= 375
    page.context.close()


@pytest.mark.parametrize(
    ("size", "shown"), [((1280, 720), 4), ((375, 812), 1)], ids=["desk", "phone"]
)
def test_the_still_goes_when_the_charts_are_drawn_and_nothing_shifts(
    browser: Browser, warm: str, size: tuple[int, int], shown: int
) -> None:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]})
    page = context.new_page()
    page.add_init_script(SEEN.replace("CHARTS", str(shown)))
    scripts = list[str]()
    page.on("request", lambda request: scripts.append(request.url))
    page.set_default_timeout(PATIENCE_MS)
    with_still(page, warm)
    page.wait_for_function("window.seen.live !== null")
    assert page.locator("#nv-still").count() == 0
    assert page.title() == "Pre-LN against Post-LN · NormViz"
    page.wait_for_timeout(1000)  # what comes late would shift the page too
    assert page.evaluate("window.seen.shift") < 0.1
    highlighter = "StreamlitSyntaxHighlighter"
    assert not [url for url in scripts if highlighter in url]
    page.get_by_text("The link, and the same in a terminal").click()
    page.locator(".stCode").nth(2).wait_for(timeout=PATIENCE_MS)
    assert [url for url in scripts if highlighter in url]  # its name has not changed
    context.close()


def test_a_visitor_who_acts_has_the_page_at_once_and_other_pages_have_titles(
    browser: Browser, warm: str
) -> None:
    page = browser.new_context().new_page()
    page.route("**/normviz/*.js", lambda route: None)  # the charts never come
    with_still(page, warm)
    page.locator(".st-key-copy_link button").wait_for(state="attached", timeout=PATIENCE_MS)
    assert page.locator("#nv-still").count() == 1
    page.mouse.click(5, 5)
    page.locator(".st-key-copy_link button").wait_for(timeout=PATIENCE_MS)
    assert page.locator("#nv-still").count() == 0
    page.goto(f"{warm}/maps")
    wait_for(lambda: page.title() == "Maps · NormViz")
    page.goto(f"{warm}/?v=1&depth=3")  # nobody has run it
    page.get_by_text("Nobody has run this yet").wait_for(timeout=PATIENCE_MS)
    wait_for(lambda: page.title() == "Pre-LN · NormViz")
    page.context.close()


def test_a_copied_link_holds_the_cursor_and_opens_there(browser: Browser, warm: str) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened(context.new_page(), f"{warm}/?v=1&scheme=pre,post&at=30&layer=4", charts=4)
    step = page.locator(".nv-step output")
    wait_for(lambda: step.inner_text() == "30")
    assert "layer 4" in page.locator(".nv-readout").inner_text()
    page.locator(".nv-step input").focus()
    page.keyboard.press("ArrowRight")
    wait_for(lambda: step.inner_text() == "31")
    links = []
    for key in ("copy_link", "copy_embed"):
        page.locator(f".st-key-{key} button").click()
        page.locator(f".st-key-{key}").get_by_text("Copied").wait_for()
        links.append(page.evaluate("navigator.clipboard.readText()"))
    assert links[0] == f"{warm}/?v=1&scheme=pre,post&at=31&layer=4"
    whole = links[0].replace("&", "&amp;")
    assert f'<p><a href="{whole}">NormViz: Pre-LN against Post-LN</a></p>' in links[1]
    context.close()
