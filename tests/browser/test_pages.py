"""What visitors do on every page but the duel, and on a phone, in headless Chromium on one server."""

from __future__ import annotations

import http.client
import re
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from browser_kit import (
    PHONE,
    address_of,
    at,
    bottom,
    box,
    changes_theme,
    chip,
    from_menu,
    has_no_barrier,
    idle,
    moved,
    opened,
    press,
    progress,
    runs,
    stands,
    text_now,
    untrained_without_a_jump,
    visit,
    wait_for,
)  # fmt: skip
from hostile_kit import SCRIPTS
from playwright.sync_api import Browser, Page

from normviz import RunConfig
from normviz.catalog import WORDS
from normviz.links import decode, encode
from normviz.runs.store import Store, queue
from normviz.studies.maps.link import ask

pytestmark = pytest.mark.browser

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=30)
PAGES = (
    "maps",
    "claims",
    "choose",
    "own-model",
    "tour",
    "assignments",
    "catalogue",
    "by-hand",
    "runs",
)
COLOURED = ("maps", "claims", "choose", "by-hand")
"""Pages with colours of their own, which both themes show."""
ACROSS = "document.querySelector('.stMain').scrollWidth"
COVERED = """[...document.querySelectorAll('.stMain .stMarkdown :is(h1, h2, h3)')].filter((heading) => {
    let part = heading.closest('.stElementContainer');
    while (part && !part.nextElementSibling) part = part.parentElement.closest('.stMain *');
    const here = heading.getBoundingClientRect(), next = part?.nextElementSibling.getBoundingClientRect();
    return next?.height && next.left < here.right && next.top < here.bottom;
}).map((heading) => heading.textContent)"""
"""Headings of which the element below covers a part."""
SCRIPT_LINKS = r"""[...document.querySelectorAll('a[href], iframe[src], img[src]')]
  .map((e) => e.getAttribute('href') ?? e.getAttribute('src'))
  .filter((u) => /^\s*javascript:/i.test(u))"""

MARKED = """window.shift = 0;
  window.stood = [...document.querySelectorAll(".st-key-maps .stVegaLiteChart")];
  window.tops = stood.map((chart) => chart.getBoundingClientRect().top)"""
MOVED = """[
  stood.filter((map, i) => !map.isConnected || map.getBoundingClientRect().top !== tops[i]).length,
  Math.floor(window.shift / 0.1)]"""
"""How many maps are new or elsewhere since MARKED, and how many times MOST_SHIFT the page shifted."""


def test_a_phone(browser: Browser, address: str) -> None:
    """Verdicts, a whole chart and Train on the first screen; settings in a sheet; training is seen; a step of
    the tour; and every page."""
    with visit(browser, address, PHONE, has_touch=True) as page:
        opened(page, address, charts=1)
        for lane in (0, 1):
            _, top, right, low = box(page, f".st-key-card_{lane}")
            assert low - top < 60
            assert right <= 375
            badge = page.locator(f".st-key-card_{lane} .stMarkdownBadge")
            assert badge.evaluate("it => it.scrollWidth <= it.clientWidth + 1"), "the whole verdict"
        wait_for(lambda: bottom(page, ".nv-loss") <= box(page, ".st-key-train button")[1])
        assert bottom(page, ".st-key-train button") <= 812
        assert page.locator(".blocks img:visible").count() == 2
        assert not page.locator(".st-key-knobs").is_visible()
        assert not page.locator(".st-key-shortcuts").is_visible(), "there is no keyboard"
        page.locator(".sheet summary").click()
        page.locator(".st-key-knob_depth").wait_for()
        fits(page)
        page.touchscreen.tap(190, 150)  # above them
        page.locator(".st-key-knobs").wait_for(state="hidden")
        gap = box(page, ".st-key-outcome")[1] - bottom(page, ".nv-table")
        assert gap < 40, "no empty screen under the charts"
        page.locator(".nv-tabs button[value=time]").click()
        page.locator(".nv-heat0").wait_for()
        changes_theme(page)
        fits(page)
        press(page, "try_0")  # at the foot of the page
        wait_for(lambda: page.evaluate("document.querySelector('.stMain').scrollTop") == 0)

        menu, side = page.get_by_test_id("stExpandSidebarButton"), page.get_by_test_id("stSidebar")
        lanes = [RunConfig(scheme=key, steps=20_000, init_seed=375) for key in ("pre", "post")]
        link = f"{address}/?{encode(lanes)}"
        # Both shut the menu.
        for leave in (side.locator("a[href$='tour']").tap, lambda: opened(page, link, charts=0)):
            idle(page)
            menu.click()
            wait_for(lambda: side.evaluate("it => it.getBoundingClientRect().left") == 0)
            leave()
            menu.wait_for()
            wait_for(lambda: side.evaluate("it => it.getBoundingClientRect().right") <= 0)
        untrained_without_a_jump(page)
        left = box(page, ".st-key-train button")[0]
        press(page, "train")
        wait_for(lambda: "steps" in progress(page))
        wait_for(lambda: 0 <= box(page, ".nv-loss")[1] < 500)
        assert box(page, ".sheet summary")[2] <= box(page, ".st-key-stop button")[0]
        assert box(page, ".st-key-stop button")[2] <= left, "a second tap on Train ends nothing"
        press(page, "stop")
        wait_for(lambda: all(chip(page, i).startswith("stopped after") for i in (0, 1)))

        page.goto(f"{address}/?story=2")
        stands(page, 2)
        fits(page)
        wait_for(lambda: bottom(page, ".nv-bars") <= box(page, ".st-key-story")[1])
        look_at_every_page(page, address)


def look_at_every_page(page: Page, address: str) -> None:
    """None needs a sideways scroll or covers its heading, and axe finds nothing."""
    page.goto(f"{address}/maps")
    page.locator(".st-key-maps canvas").nth(2).wait_for()
    page.locator(".st-key-copy_maps button").wait_for()
    assert moved(page) == []
    for path in PAGES:
        if path != "maps":
            # As a visitor who chooses it in the menu.
            page.locator(f"a[href$='{path}']").first.evaluate("link => link.click()")
            page.wait_for_url(f"{address}/{path}*")
        idle(page)
        page.locator(".stMain h1").wait_for()
        wait_for(lambda: page.evaluate(COVERED) == [])
        fits(page)
        has_no_barrier(page, both=path in COLOURED)
        if path == "maps":
            look_at_a_word_and_a_cell(page)


def look_at_a_word_and_a_cell(page: Page) -> None:
    """A word opens its sentence by touch and by key, a tap on a cell opens its duel, and both stay on the
    screen."""
    page.locator(".word", has_text="nat").first.tap()
    page.locator("#word-nat").wait_for()
    left, _, right, _ = box(page, "#word-nat")
    assert 0 <= left < right <= 375
    page.keyboard.press("Escape")
    page.locator("#word-nat").wait_for(state="hidden")
    page.locator(".word", has_text="nat").first.focus()
    page.keyboard.press("Enter")
    page.locator("#word-nat", has_text=WORDS["nat"].sentence).wait_for()
    page.keyboard.press("Escape")
    maps = page.locator(".st-key-maps .stVegaLiteChart canvas")
    maps.first.hover(position=at(maps.first, 0.4, 0.5))
    left, _, right, _ = box(page, "#vg-tooltip-element.visible")
    assert 0 <= left < right <= 375
    maps.nth(1).tap(position=at(maps.nth(1), 0.4, 0.5))
    page.wait_for_selector(".st-key-live canvas")
    idle(page)


def fits(page: Page) -> None:
    wait_for(lambda: page.evaluate(ACROSS) <= 375)
    beyond = """[...document.querySelectorAll('.nv *, .stMain button')]
        .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 376).map(e => e.className)"""
    wait_for(lambda: page.evaluate(beyond) == [])


def test_letters(browser: Browser, address: str) -> None:
    """They are shown and act, or are off, also after a reload; the end of a run is read out."""
    with visit(browser, address) as page:
        page.goto(f"{address}/?{encode([TINY])}")
        idle(page)
        assert text_now(page, ".page-status") == "", "nothing is read out when a page opens"
        letter = page.locator(".st-key-train kbd").first
        letter.wait_for()
        page.get_by_text("Keyboard shortcuts").click()
        letter.wait_for(state="detached")
        wait_for(lambda: [one for one in page.context.cookies() if one.get("value") == "off"])
        page.reload()
        idle(page)
        wait_for(lambda: not page.locator(".st-key-shortcuts input").is_checked())
        page.locator("h1").click()
        page.keyboard.press("t")
        page.get_by_text("Keyboard shortcuts").click()
        letter.wait_for()
        assert "not trained yet" in page.locator(".st-key-card_0").inner_text()
        page.locator("h1").click()
        page.keyboard.press("t")
        wait_for(lambda: text_now(page, ".page-status").startswith("A Pre-LN: learned"))


def test_from_the_guide_and_from_a_map_to_a_duel(browser: Browser, address: str) -> None:
    """By the link of the advice, and by a click on a cell. With nothing cached the guide opens without a
    jump."""
    with visit(browser, address, {"width": 1280, "height": 900}) as page:
        page.goto(f"{address}/choose")
        advice = page.get_by_role("link", name=re.compile("Compare .* in a duel"))
        advice.wait_for()
        idle(page)
        assert moved(page) == []
        advice.click()
        page.wait_for_selector(".st-key-live canvas")
        wait_for(lambda: "learned" in chip(page, 0))
        assert "depth=16" in page.url

        page.get_by_role("link", name="Maps").first.click()
        charts = ".st-key-maps .stVegaLiteChart canvas"
        page.wait_for_function(f"document.querySelectorAll('{charts}').length == 3")
        idle(page)
        # The plot begins right of the labels and ends at the right edge; it is 36 pixels a row high.
        left, top, right, _ = box(page, charts)
        place = left + 80 + 0.25 * (right - left - 80), top + 52 + 3.4 * 36
        page.mouse.move(*place)
        page.locator("#vg-tooltip-element.visible img").wait_for()
        assert "depth 4, learning rate 0.003" in text_now(page, "#vg-tooltip-element")
        page.mouse.click(*place)
        page.wait_for_selector(".st-key-live canvas")
        wait_for(lambda: "scheme=" in address_of(page) and "learned" in chip(page, 0))
        (shown,) = decode(urlsplit(address_of(page)).query).lanes
        assert (shown.scheme, shown.depth, shown.lr) == ("post", 4, 0.003)


def test_measure_fill_and_tidy(browser: Browser, address: str, data: Path) -> None:
    """A map that fills, a number that is worked out by hand, runs that are deleted."""
    with visit(browser, address, {"width": 1280, "height": 900}) as page:
        small = {"scheme": "pre,post", "depth": "1,2", "lr": "0.001,0.01", "width": "16", "heads": "2",
                 "seq_len": "8", "batch": "4", "steps": "100"}  # fmt: skip
        page.goto(f"{address}/maps?{ask(small, 'depth', 'lr').query()}")
        idle(page)
        page.locator(".st-key-maps canvas").nth(1).wait_for()
        page.evaluate(MARKED)
        press(page, "fill")
        page.locator(".st-key-stop_fill, .st-key-map_state .stProgress").first.wait_for()
        page.locator(".st-key-fill").wait_for(state="detached")
        wait_for(lambda: page.locator(".st-key-stop_fill").count() == 0)
        page.locator(".map-legend").wait_for()
        idle(page)
        assert page.evaluate(MOVED) == [0, 0], "the maps stay where they are"

        from_menu(page, "Learn", "By hand")
        sheet = page.locator(".st-key-hand_sheet_batchnorm .hand-sheet")
        page.locator(".st-key-matrix_batchnorm td[data-at='3,2']").first.click()
        sheet.get_by_text("(2 + 0 + 4 − 2) / 4 = 1").wait_for()
        wait_for(lambda: "row=3&feature=2" in address_of(page))

        store = Store(data)
        page.goto(f"{address}/?v=1&lanes=1&scheme=peri&depth=2&steps=30&init_seed=90")
        press(page, "train")
        wait_for(lambda: "loss" in chip(page, 0))
        (run,) = (it.id for it in runs(store, 90))
        page.get_by_role("link", name="History").click()
        page.locator(f".st-key-pick_{run} input").press("Space")
        idle(page)
        press(page, "reopen")
        page.wait_for_selector(".st-key-live canvas")
        wait_for(lambda: "loss" in chip(page, 0))
        page.go_back()  # it is still chosen
        wait_for(lambda: page.locator(".st-key-delete_chosen button:visible").is_enabled())
        idle(page)
        press(page, "delete_chosen")
        press(page, "delete_sure")
        page.get_by_text("Deleted 1 run.").wait_for()
        assert store.run(run) is None


def test_a_hostile_visitor(browser: Browser, address: str, data: Path) -> None:
    """No script runs, as the name of a setting, as its value, in a page's own words, in a box, in a row of
    the store. No path leads to a file, no other site gets a socket or an answer, no upload has no token."""
    words = [quote(script, safe="") for script in SCRIPTS[:9]]
    names = "&".join(f"{word}=1" for word in words[:5])
    fields = ("scheme", "lr", "depth", "norm", "init", "task", "view", "probe", "story")
    values = "&".join(f"{name}={word}" for name, word in zip(fields, words, strict=True))
    store, config = Store(data), RunConfig(depth=5, steps=3, init_seed=91)
    with store.db.transaction() as db:  # at once: the server's supervisor must not find it waiting
        run = queue.join(db, config, None)
        db.execute(
            "UPDATE runs SET status = 'failed', message = ?, device = ?, ended = 1 WHERE id = ?",
            (SCRIPTS[0], SCRIPTS[4], run),
        )
    with visit(browser, address) as page:
        names += f"&{quote('http://evil.example/login', safe='')}=1&www.evil.example=1"
        for link in (f"?v=1&{values}", f"claims?claim={words[0]}", f"?v=1&{names}"):
            page.goto(f"{address}/{link}")
            page.wait_for_selector("[data-testid=stAlert]")
            idle(page)
            assert page.evaluate(SCRIPT_LINKS) == []
        shown = page.locator("[data-testid=stAlert]", has_text="not settings here").first
        assert "evil.example/login" in shown.inner_text()
        assert shown.locator("a").count() == 0
        page.goto(f"{address}/?embed=true&v=1&depth=99999")
        page.wait_for_selector("text=/depth is .99999/")
        assert page.get_by_role("link", name="Open in NormViz").count() == 0
        page.goto(f"{address}/?{encode([config])}")
        page.wait_for_selector("text=failed after")
        page.goto(f"{address}/runs")
        page.wait_for_selector(f".st-key-run_row_{run}")
        page.locator(".st-key-runs_search input").fill(SCRIPTS[0])
        page.locator(".st-key-runs_search input").press("Enter")
        page.wait_for_selector("text=No placement, norm, task")
        assert page.evaluate(SCRIPT_LINKS) == []
    for path in ("../../../etc/passwd", "..%2f..%2fetc%2fpasswd", "normviz/..%2fnormviz.js", "app/main.py",
                 ".streamlit/config.toml", "component/x/../../../etc/passwd"):  # fmt: skip
        body = asked(address, "GET", f"/{path}")[1]
        assert not [it for it in (b"root:", b"gatherUsageStats", b"st.navigation") if it in body]
    foreign = {"Origin": "https://evil.example"}
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Protocol": "streamlit",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    for path in ("/_stcore/stream", "/normviz/numbers"):
        assert asked(address, "GET", path, upgrade | foreign)[0].status == 403
    answer = asked(address, "GET", "/healthz", foreign)[0]
    assert answer.getheader("Access-Control-Allow-Origin") in (None, address)
    assert asked(address, "PUT", "/_stcore/upload_file/session/file")[0].status in (400, 403)


def asked(
    address: str, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPResponse, bytes]:
    """An answer and its body; the path is sent as it is."""
    line = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    line.putrequest(method, path)
    for name, value in (headers or {}).items():
        line.putheader(name, value)
    line.endheaders()
    answer = line.getresponse()
    body = answer.read()
    line.close()
    return answer, body
