"""What visitors do, from their first click to their last, in headless Chromium on one server."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from backend_kit import Lane
from browser_kit import (
    PATIENCE_MS,
    address_of,
    barriers,
    changes_theme,
    chip,
    from_menu,
    opened,
    other_hosts,
    text_now,
    wait_for,
)  # fmt: skip
from hostile_kit import SCRIPTS
from playwright.sync_api import Browser, Locator, Page

from normviz import RunConfig
from normviz.catalog import WORDS
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.links import decode, encode
from normviz.runs import Run
from normviz.runs.names import lane_name
from normviz.runs.store import Store, queue
from normviz.studies.maps.link import ask

pytestmark = pytest.mark.browser

TINY = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=30)
LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 375, "height": 812}
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
IDLE = """document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
  && document.querySelector(".page-status")"""
ACROSS = "document.querySelector('.stMain').scrollWidth"
HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"""
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

SHIFTS = """window.shift = 0; window.moves = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) {
    window.shift += entry.value;
    for (const { node, previousRect: from, currentRect: to } of entry.sources)
      window.moves.push(`${entry.value.toFixed(3)}: ` +
        `${(node?.closest?.('[class*="st-key-"]') ?? node)?.className}, ` +
        `top ${from.y} to ${to.y}, height ${from.height} to ${to.height}`);
  }
}).observe({ type: "layout-shift", buffered: true });"""
MARKED = """window.shift = 0;
  window.stood = [...document.querySelectorAll(".st-key-maps .stVegaLiteChart")];
  window.tops = stood.map((chart) => chart.getBoundingClientRect().top)"""
MOVED = """[
  stood.filter((map, i) => !map.isConnected || map.getBoundingClientRect().top !== tops[i]).length,
  Math.floor(window.shift / 0.1)]"""
"""How many maps are new or elsewhere since MARKED, and how many times MOST_SHIFT the page shifted."""
MOST_SHIFT = 0.1
"""Layout shift up to which a page opens well, as Web Vitals have it."""


def moved(page: Page) -> list[str]:
    """What moved since the page was opened, where it is more than MOST_SHIFT in all."""
    return page.evaluate(f"window.shift > {MOST_SHIFT} ? window.moves : []")


@contextmanager
def visit(browser: Browser, address: str = "", size: Any = LAPTOP, **look: Any) -> Iterator[Page]:
    """A tab of a browser that knows nothing of earlier ones. At the end it must have printed no error, shown
    no traceback, run no script of a stranger, and, with `address`, asked no other host."""
    with browser.new_context(viewport=size, accept_downloads=True, **look) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(SHIFTS)
        said, asked = list[str](), list[str]()
        # Streamlit looks for its server below a page's address first, and is told 404.
        page.on(
            "console",
            lambda it: (
                it.type == "error"
                and "/_stcore/" not in it.location["url"]
                and said.append(it.text)
            ),
        )
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda it: (said.append(it.message), it.dismiss()))
        page.on("request", lambda it: asked.append(it.url))
        page.on("websocket", lambda it: asked.append(it.url))
        yield page
        assert not said
        assert page.locator(".stException").count() == 0
        assert page.evaluate("window.pwned") is None
        assert not address or (asked and not other_hosts(asked, address))


def idle(page: Page) -> None:
    """Until no script of the page runs, which may still draw a widget anew."""
    page.wait_for_function(IDLE)


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def progress(page: Page) -> str:
    return text_now(page, ".nv-progress:not([hidden]) span")


def step(page: Page) -> int:
    return int(text_now(page, ".nv-step output") or -1)


def box(page: Page, selector: str) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of the first visible match."""
    found = page.locator(f"{selector} >> visible=true").first.bounding_box()
    assert found is not None, selector
    return found["x"], found["y"], found["x"] + found["width"], found["y"] + found["height"]


def bottom(page: Page, selector: str) -> float:
    return box(page, selector)[3]


def switch(page: Page, label: str) -> None:
    page.locator(".st-key-lane1_scheme").get_by_text(label, exact=True).click()


def at(place: Locator, x: float, y: float) -> Any:
    """A point of a chart, as shares of its width and height."""
    found = place.bounding_box()
    assert found
    return {"x": found["width"] * x, "y": found["height"] * y}


def saved(page: Page, button: Locator, folder: Path) -> Path:
    with page.expect_download() as waiting:
        button.click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def shows(page: Page, lanes: Any) -> bool:
    """Whether cards and address are of these lanes; the hero's address may say nothing."""
    query = page.evaluate("location.search")
    said = decode(query).lanes if query else PRESETS["hero"].lanes()
    names = page.locator(".stMain .lane-name").all_text_contents()
    expected = [" ".join(lane_name("ABCD"[i], lane, lanes).split()) for i, lane in enumerate(lanes)]
    return names[: len(lanes)] == expected and list(said) == list(lanes)


def test_a_first_visit(browser: Browser, address: str) -> None:
    """The finished duel on one screen, at first as a picture without scripts; point at it, move through it,
    look at it in all ways, turn the switch."""
    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/static/js/**", lambda route: route.abort())  # nothing of Streamlit's runs
        still = page.locator("#nv-still svg:visible")
        wait_for(lambda: page.goto(address) and still.count() == 4)
        assert "at chance" in page.locator("#nv-still p").nth(1).inner_text()
    with visit(browser, address, reduced_motion="reduce") as page:
        opened(page, address, charts=4)
        assert page.locator("#nv-still").count() == 0
        assert moved(page) == []
        assert page.locator("h1").inner_text().startswith("Pre-LN learned, Post-LN ended at chance")
        assert "learned" in chip(page, 0)
        assert "at chance" in chip(page, 1)
        wait_for(lambda: bottom(page, ".nv-replay") <= 720 and box(page, ".blocks")[1] < 110)
        assert max(bottom(page, ".nv-loss"), bottom(page, ".nv-bars")) <= 720
        wait_for(lambda: step(page) == 199)  # motion is reduced: it does not play by itself
        look_at_a_step(page)
        look_in_all_ways(page)

        block = page.locator(".blocks img:visible").nth(1)
        before = block.get_attribute("src")
        switch(page, "Peri-LN")  # a run that ships
        wait_for(lambda: "learned" in chip(page, 1) and block.get_attribute("src") != before)
        idle(page)
        page.locator(".st-key-lane1_open button:visible").first.click()
        wait_for(lambda: page.locator("[class*='st-key-lane1_to_'] button:visible").count() >= 46)
        page.locator(".st-key-lane1_to_resp button:visible").first.click()
        page.wait_for_url("**scheme=pre%2Cresp*")
        wait_for(lambda: page.locator(".st-key-lane1_sheet:visible").count() == 0)
        look_at_settings(page, address)


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_a_link_that_nobody_has_run_opens_without_a_jump(
    browser: Browser, address: str, size: Any
) -> None:
    """No picture covers the page until it is whole."""
    lanes = [RunConfig(scheme=scheme, init_seed=998) for scheme in ("pre", "post")]
    with visit(browser, address, size) as page:
        opened(page, f"{address}/?{encode(lanes)}", charts=0)
        idle(page)
        page.wait_for_function("!document.querySelector('.stMain [data-testid=stSkeleton]')")
        page.locator(".st-key-live").get_by_text("Press Train").wait_for()
        assert moved(page) == []


def look_at_settings(page: Page, address: str) -> None:
    """The settings of one lane after another show what the lane has, and a look changes nothing."""
    link = "scheme=pre,post&norm=rmsnorm&qk_norm=head&depth=32"
    opened(page, f"{address}/?v=1&{link}", charts=0)
    for lane in (0, 1, 0):
        idle(page)
        page.locator(f".st-key-lane{lane}_open button:visible").first.click()
        for field, label in (("norm", "RMSNorm"), ("init", "Xavier"), ("qk_norm", "Per head")):
            picked = page.locator(f".st-key-lane{lane}_{field} input:visible")
            wait_for(lambda it=picked, label=label: it.input_value(timeout=20_000) == label, 20)
        page.mouse.click(1270, 700)
        wait_for(lambda lane=lane: page.locator(f".st-key-lane{lane}_sheet").count() == 0)
    idle(page)
    assert link in unquote(address_of(page))


def look_at_a_step(page: Page) -> None:
    """A pointer on one chart moves all, a click keeps a layer, keys move and the table has the numbers."""
    readout = page.locator(".nv-readout")
    loss, heat = page.locator(".nv-loss [role=img]"), page.locator(".nv-heat1 [role=img]")
    loss.hover(position=at(loss, 0.4, 0.5))
    wait_for(lambda: 20 < step(page) < 120 and f"Step {step(page)}\n" in readout.inner_text())
    assert readout.is_visible()
    page.locator(".nv-definition").hover()  # away again
    wait_for(lambda: step(page) == 199)
    heat.click(position=at(heat, 0.5, 0.5))
    page.locator(".nv-definition").hover()
    wait_for(lambda: 50 < step(page) < 150)
    wait_for(lambda: re.search(r"layer ([3-9]|10):", readout.inner_text()))
    page.keyboard.press("Escape")
    wait_for(lambda: "layer" not in readout.inner_text())
    page.locator(".nv-step input").fill("199")
    page.locator(".nv-step input").blur()
    wait_for(lambda: step(page) == 199)
    page.locator("h1").click()
    page.keyboard.press("Shift+ArrowLeft")
    wait_for(lambda: step(page) == 189)
    page.keyboard.press("ArrowRight")
    wait_for(lambda: step(page) == 190)
    page.get_by_text("Numbers at this step").click()
    rows = page.locator(".nv-table tbody tr")
    wait_for(lambda: rows.count() == 12)
    first, last = rows.last.inner_text().split(), rows.first.inner_text().split()
    assert (first[0], last[0]) == ("1", "12")
    assert float(first[2]) < 1e-3 < float(last[2])  # Post-LN, after training


def look_in_all_ways(page: Page) -> None:
    for view, place in (
        ("A ÷ B", ".nv-ratio canvas"),
        ("First, middle, last", ".nv-lines canvas"),
        ("Signal walk", ".nv-walk-lane svg"),
        ("Every layer", ".nv-heat1 canvas"),
    ):
        page.get_by_label(view).check()
        page.locator(place).first.wait_for()
    options = page.locator(".nv-probe option")
    key, label = options.last.evaluate("o => [o.value, o.innerText]")
    page.locator(".nv-probe").select_option(key)
    page.locator(".nv-bars figcaption", has_text=label).wait_for()
    page.wait_for_url(f"**probe={key}*")


def test_train_pause_rate_and_stop(browser: Browser, address: str, data: Path) -> None:
    """Charts move in place, one press is one step or one edit of the rate, another browser sees it live."""
    lanes = [RunConfig(scheme=scheme, init_seed=999, steps=20_000) for scheme in ("pre", "post")]
    store = Store(data)
    with visit(browser, address) as page:
        opened(page, f"{address}/?{encode(lanes)}", charts=0)
        press(page, "train")
        wait_for(lambda: "steps/s" in progress(page))
        assert page.locator(".nv-step").inner_text().strip() == "", "the progress names the step"
        assert bottom(page, ".st-key-more summary") <= 720
        charts_move_in_place(page)

        wait_for(lambda: all(len(store.steps(run).step) for run in runs(store, 999)))
        page.locator(".st-key-pause button:visible", has_text="Pause").click()
        resume = page.locator(".st-key-pause button:visible", has_text="Resume")
        resume.wait_for()
        wait_for(lambda: {run.status for run in runs(store, 999)} == {"paused"})
        done = min(len(store.steps(run).step) for run in runs(store, 999)) - 1  # no more come
        wait_for(lambda: progress(page).startswith(f"Paused at step {done} of"))
        for _ in range(5):  # a fragment's tick may carry a press a second time
            press(page, "step")
            done += 1
            wait_for(lambda at=done: progress(page).startswith(f"Paused at step {at} of"))
        wait_for(lambda: page.locator("h1").inner_text().startswith("Paused at step"))
        resume.click()
        wait_for(lambda: "steps/s" in progress(page))

        rate = page.locator(".st-key-knob_lr input[type=range]")
        assert rate.get_attribute("aria-valuetext") == "0.003"
        rate.focus()
        page.keyboard.press("ArrowRight")
        wait_for(lambda: [set(it) for it in rates(store, 999)] == [{0.003, 0.01}] * 2)
        assert rate.get_attribute("aria-valuetext") == "0.01"
        wait_for(lambda: "lr_edits=" in address_of(page))  # the runs are found by it from now on
        with visit(browser, address) as other:
            opened(other, address_of(page))
            seen: set[str] = set()
            wait_for(lambda: seen.add(progress(other)) or len(seen) >= 3)
        press(page, "stop")
        wait_for(lambda: all(chip(page, i).startswith("stopped after") for i in (0, 1)))
        assert len({it.index(0.01) for it in rates(store, 999)}) == 1, "at one step in both lanes"


def runs(store: Store, seed: int) -> list[Run]:
    rows = store.db.connection.execute("SELECT id FROM runs ORDER BY id").fetchall()
    return [run for (it,) in rows if (run := store.run(it)) and run.config.init_seed == seed]


def rates(store: Store, seed: int) -> list[list[float]]:
    """The learning rate of each step that the runs of a seed have taken."""
    return [store.steps(run).lr.tolist() for run in runs(store, seed)]


def charts_move_in_place(page: Page) -> None:
    """No chart is built anew, its canvas stays the same node, and zoom is kept."""
    page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
    page.evaluate("document.querySelectorAll('.st-key-live canvas').forEach(c => c.kept = true)")
    count = "[...document.querySelectorAll('.nv-loss canvas')].filter(c => c.kept).length"
    at = step(page)
    wait_for(lambda: step(page) > at)  # the cursor follows the training
    before, seen = page.evaluate(count), set[str]()
    domain = "document.querySelector('.nv-root').player.charts.loss.view.scale('x').domain()"
    page.locator(".nv-loss canvas").hover()
    page.keyboard.down("Control")

    def zooms() -> bool:
        """A chart that is being drawn takes no turn of the wheel; its visitor turns it again."""
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(500)
        return page.evaluate(domain)[1] < 19_999

    wait_for(zooms)
    page.keyboard.up("Control")
    zoomed = page.evaluate(domain)
    wait_for(lambda: seen.add(progress(page)) or len(seen) >= 4)
    assert before == page.evaluate(count) > 0
    assert page.evaluate(domain) == zoomed


def test_a_result_is_shared_and_taken_away(browser: Browser, address: str, tmp_path: Path) -> None:
    """Train by a change alone, copy the link, open it in a fresh browser; a replay without a network, tables,
    the script that repeats the run, pictures, charts in a frame."""
    short = RunConfig(depth=3, steps=60, init_seed=31)
    lanes = [short.replace(depth=2), short.replace(depth=2, scheme="post")]
    with visit(browser, address, reduced_motion="reduce") as page:
        opened(page, f"{address}/?{encode([short, short.replace(scheme='post')])}", charts=0)
        page.get_by_text("Nobody has run this yet").wait_for()
        idle(page)
        page.locator(".st-key-knob_depth input[type=range]").focus()
        page.keyboard.press("ArrowLeft")
        wait_for(lambda: shows(page, lanes))
        wait_for(lambda: all("loss" in chip(page, i) for i in (0, 1)))
        verdicts = chip(page, 0), chip(page, 1)
        page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
        page.locator(".nv-step input").fill("30")
        page.locator(".nv-step input").blur()
        wait_for(lambda: step(page) == 30)
        page.locator(".st-key-copy_link button").click()
        page.get_by_text("Copied").wait_for()
        link = page.evaluate("navigator.clipboard.readText()")
        assert "scheme=pre,post" in link
        assert "at=30" in link

        with visit(browser, address, reduced_motion="reduce") as fresh:
            opened(fresh, link)
            assert (chip(fresh, 0), chip(fresh, 1)) == verdicts
            assert not progress(fresh)
            wait_for(lambda: step(fresh) == 30)
            fresh.goto(f"{link}&embed=true")
            fresh.locator(".nv-heat0 canvas").first.wait_for()
            assert fresh.locator(".st-key-train").count() == 0
            fresh.get_by_role("link", name="Open in NormViz").wait_for()

        picture(page, tmp_path)
        replay = downloads(page, tmp_path)
        readout = page.locator(".nv-readout").inner_text()

    with browser.new_context(offline=True, reduced_motion="reduce") as alone:
        other = alone.new_page()
        errors: list[str] = []
        other.on("pageerror", lambda error: errors.append(str(error)))
        other.goto(replay.as_uri())
        wait_for(lambda: other.locator(".nv canvas").count() >= 4)
        other.locator(".nv-step input").fill("30")
        wait_for(lambda: other.locator(".nv-readout").inner_text() == readout)
        other.get_by_label("Signal walk").check()
        other.locator(".nv-walk-lane svg").first.wait_for()
        other.locator(".nv-play").click()
        wait_for(lambda: 0 < step(other) < 30 or step(other) > 30)
        assert not errors


def picture(page: Page, folder: Path) -> None:
    buttons = page.locator(".nv-heat1 .nv-save")

    def take(kind: str) -> Path:
        page.locator(".nv-heat1 .nv-menu summary").click()
        return saved(page, buttons.filter(has_text=kind), folder)

    png, svg = take("PNG"), take("SVG")
    assert png.name == "normviz-pre-ln-against-post-ln-heat1-step30.png"
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    drawn = svg.read_text("utf-8")
    assert not [it for it in ("B Post-LN", "layer", "2 blocks, width 32") if it not in drawn]


def downloads(page: Page, folder: Path) -> Path:
    """Take all away; the script repeats the run's loss. Returns the replay."""
    page.get_by_text("Download", exact=True).click()

    def take(name: str) -> Path:
        return saved(page, page.get_by_role("button", name=name, exact=True), folder)

    for kind in ("CSV", "Parquet"):
        with zipfile.ZipFile(take(f"Numbers ({kind})")) as files:
            assert "config.json" in files.namelist()
    assert len(json.loads(take("Settings (JSON)").read_text())["lanes"]) == 2
    replay, script = take("Replay (HTML)"), take("Lane A as a script (.py)")
    page.keyboard.press("Escape")
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    final = re.search(r"final loss (\d\.\d+)", said.stdout)
    told = re.search(r"loss (\d\.\d+)", chip(page, 0))
    assert final
    assert told
    assert float(final[1]) == pytest.approx(float(told[1]), abs=0.01)
    return replay


def test_the_tour_to_its_end(browser: Browser, address: str) -> None:
    """Guess with the keyboard, go on with N; the curves of a step are on the screen with its words. In a
    step, and in the Duel page at the end, axe finds nothing."""
    with visit(browser, address) as page:
        opened(page, address)
        press(page, "tour")
        ends = len(STEPS) - 1
        for number in (1, 2, 3, ends, ends + 1):
            if number == ends:
                page.goto(f"{address}/?story={ends}")
            stands(page, number)
            wait_for(lambda n=number: f"story={n}" in address_of(page))
            wait_for(lambda: page.locator(".nv-loss").first.bounding_box()["y"] < 500)
            if number == 1:
                both_themes(page)
                place = box(page, ".st-key-story_next button")
            assert box(page, ".st-key-story_next button") == place, "also where it leads nowhere"
            if number <= ends:
                page.keyboard.press("n")
        press(page, "story_play")
        page.locator(".st-key-tour button").first.wait_for()
        both_themes(page)


def stands(page: Page, number: int) -> None:
    """Wait until a step is on the page, its charts too, and answer its question."""
    here, strip = STEPS[number - 1], page.locator(".st-key-story")
    strip.get_by_text(here.title, exact=True).wait_for()
    if here.question:
        page.locator(".st-key-guess_1 button").focus()
        page.keyboard.press("Enter")
        strip.get_by_text(re.compile("^(Right|Not quite)")).wait_for()
    wait_for(lambda: page.locator(".st-key-live canvas").count() >= 2 + len(here.lanes()))
    strip.get_by_text(re.compile("1 seed each")).wait_for()
    wait_for(lambda: page.locator(".nv-probe").input_value() == here.probe)


def test_a_phone(browser: Browser, address: str) -> None:
    """Verdicts, a whole chart and Train on the first screen; settings in a sheet; training is seen; a step of
    the tour; a tap on a map's cell opens it; the page needs no sideways scroll."""
    with visit(browser, address, PHONE, has_touch=True, reduced_motion="reduce") as page:
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
        page.locator(".sheet summary").click()
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
        for leave in (side.locator("a[href$='tour']").tap, page.reload):  # both shut the menu
            idle(page)
            menu.click()
            wait_for(lambda: side.evaluate("it => it.getBoundingClientRect().left") == 0)
            leave()
            menu.wait_for()
            wait_for(lambda: side.evaluate("it => it.getBoundingClientRect().right") <= 0)

        opened(page, f"{address}/?v=1&lanes=1&scheme=post&steps=20000&init_seed=375", charts=0)
        left = box(page, ".st-key-train button")[0]
        press(page, "train")
        wait_for(lambda: "steps" in progress(page))
        wait_for(lambda: 0 <= box(page, ".nv-loss")[1] < 500)
        assert box(page, ".sheet summary")[2] <= box(page, ".st-key-stop button")[0]
        assert box(page, ".st-key-stop button")[2] <= left, "a second tap on Train ends nothing"
        press(page, "stop")
        wait_for(lambda: chip(page, 0).startswith("stopped after"))

        page.goto(f"{address}/?story=2")
        stands(page, 2)
        fits(page)
        wait_for(lambda: bottom(page, ".nv-bars") <= box(page, ".st-key-story")[1])

        opens_a_cell_by_a_tap(page, address)


def opens_a_cell_by_a_tap(page: Page, address: str) -> None:
    """After a page of maps on which nothing moves and a tooltip stays on the screen."""
    page.goto(f"{address}/maps")
    page.locator(".st-key-maps canvas").nth(2).wait_for()
    page.locator(".st-key-copy_maps button").wait_for()
    assert moved(page) == []
    idle(page)
    maps = page.locator(".st-key-maps .stVegaLiteChart canvas")
    maps.first.hover(position=at(maps.first, 0.4, 0.5))
    left, _, right, _ = box(page, "#vg-tooltip-element.visible")
    assert left >= 0
    assert right <= 375
    maps.nth(1).tap(position=at(maps.nth(1), 0.4, 0.5))
    page.wait_for_selector(".st-key-live canvas")


def test_every_page_on_a_phone_and_in_both_themes(browser: Browser, address: str) -> None:
    """None needs a sideways scroll on a phone or covers its heading; axe finds nothing, there or in a frame
    on a laptop; headings skip no level; a word opens its sentence by touch and by key."""
    with visit(browser, address, PHONE, has_touch=True) as page:
        opened(page, address, charts=1)
        for path in PAGES:
            # As a visitor who chooses it in the menu.
            page.locator(f"a[href$='{path}']").first.evaluate("link => link.click()")
            page.wait_for_url(f"{address}/{path}*")
            idle(page)
            page.locator(".stMain h1").wait_for()
            wait_for(lambda: page.evaluate(COVERED) == [])
            fits(page)
            if path == "maps":
                page.locator(".word", has_text="nat").first.tap()
                page.locator("#word-nat").wait_for()
                left, _, right, _ = box(page, "#word-nat")
                assert left >= 0
                assert right <= 375
                page.keyboard.press("Escape")
                page.locator("#word-nat").wait_for(state="hidden")
                page.locator(".word", has_text="nat").first.focus()
                page.keyboard.press("Enter")
                page.locator("#word-nat", has_text=WORDS["nat"].sentence).wait_for()
                page.keyboard.press("Escape")
            both_themes(page)
        page.set_viewport_size(LAPTOP)
        page.goto(f"{address}/?embed=true")
        page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
        both_themes(page)


def both_themes(page: Page) -> None:
    """axe finds nothing on the page in its theme, nor any colour that is hard to read in the other one."""
    page.mouse.move(0, 0)  # a tooltip lies outside of all landmarks
    idle(page)
    levels = page.evaluate(HEADINGS)
    assert levels.count(1) == ("embed" not in page.url), (page.url, levels)
    assert all(b - a <= 1 for a, b in pairwise(levels)), (page.url, levels)
    assert barriers(page) == [], page.url
    changes_theme(page)
    assert barriers(page, only="color-contrast") == [], page.url


def fits(page: Page) -> None:
    wait_for(lambda: page.evaluate(ACROSS) <= 375)
    beyond = """[...document.querySelectorAll('.nv *, .stMain button')]
        .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 376).map(e => e.className)"""
    wait_for(lambda: page.evaluate(beyond) == [])


def test_back_through_eight_states(browser: Browser, address: str) -> None:
    """Two placements, a change that trains, a preset, two steps of the tour, another page: all come back. The
    navigation leads to the duel that was there."""
    with visit(browser, address) as page:
        opened(page, address)
        hero = PRESETS["hero"].lanes()
        peri, deepnorm = ((hero[0], hero[1].replace(scheme=key)) for key in ("peri", "deepnorm"))
        shallow = tuple(lane.replace(depth=1) for lane in deepnorm)  # trains in a moment
        warmup = PRESETS["warmup"].lanes()
        for lanes, label in ((peri, "Peri-LN"), (deepnorm, "DeepNorm")):
            idle(page)
            switch(page, label)
            wait_for(lambda lanes=lanes: shows(page, lanes) and "learned" in chip(page, 1))
        idle(page)
        page.locator(".st-key-knob_depth input[type=range]").focus()
        page.keyboard.press("Home")
        wait_for(lambda: shows(page, shallow))
        wait_for(lambda: all("loss" in chip(page, i) for i in (0, 1)))
        idle(page)
        page.get_by_role("button", name="Presets").click()
        press(page, "open_warmup")
        wait_for(lambda: shows(page, warmup))
        idle(page)
        press(page, "tour")
        wait_for(lambda: shows(page, STEPS[0].lanes()))
        press(page, "story_next")
        wait_for(lambda: shows(page, STEPS[1].lanes()))
        idle(page)
        page.get_by_role("link", name="Claims").first.click()
        page.get_by_role("heading", name="claims about norm placement").wait_for()
        idle(page)
        page.get_by_role("link", name="Duel").first.click()
        wait_for(lambda: shows(page, STEPS[1].lanes()))
        idle(page)
        page.evaluate("history.back()")
        page.get_by_role("heading", name="claims about norm placement").wait_for()
        idle(page)
        states = [hero, peri, deepnorm, shallow, warmup, STEPS[0].lanes(), STEPS[1].lanes()]
        for lanes in reversed(states):
            page.evaluate("history.back()")
            wait_for(lambda lanes=lanes: shows(page, lanes))
            idle(page)
        assert "learned" in chip(page, 0)
        page.evaluate("history.forward()")
        wait_for(lambda: shows(page, peri))
        wait_for(lambda: page.evaluate("document.querySelector('.stMain').scrollTop") == 0)


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


def test_from_a_map_and_from_the_guide_to_a_duel(browser: Browser, address: str) -> None:
    """By a click on a cell, and by the link of the advice."""
    with visit(browser, address, {"width": 1280, "height": 900}) as page:
        charts = ".st-key-maps .stVegaLiteChart canvas"
        page.goto(f"{address}/maps")
        page.wait_for_function(f"document.querySelectorAll('{charts}').length == 3")
        idle(page)
        # The plot begins right of the labels and ends at the right edge; it is 46 pixels a row high.
        left, top, right, _ = box(page, charts)
        place = left + 80 + 0.25 * (right - left - 80), top + 52 + 3.4 * 46
        page.mouse.move(*place)
        page.locator("#vg-tooltip-element.visible img").wait_for()
        assert "depth 4, learning rate 0.003" in text_now(page, "#vg-tooltip-element")
        page.mouse.click(*place)
        page.wait_for_selector(".st-key-live canvas")
        wait_for(lambda: "scheme=" in address_of(page) and "learned" in chip(page, 0))
        (shown,) = decode(urlsplit(address_of(page)).query).lanes
        assert (shown.scheme, shown.depth, shown.lr) == ("post", 4, 0.003)

        page.get_by_role("link", name="Choose").first.click()
        page.get_by_role("link", name=re.compile("Compare .* in a duel")).click()
        page.wait_for_selector(".st-key-live canvas")
        wait_for(lambda: "learned" in chip(page, 0))
        assert "depth=16" in page.url


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


def test_a_browser_that_comes_back_in_the_middle_of_a_run_sees_it_to_its_end(
    browser: Browser, address: str, data: Path
) -> None:
    """The run waits between its steps, so that it is in the middle whatever the machine's speed."""
    store, config = Store(data), RunConfig(scheme="deepnorm", depth=4, steps=300)
    run = Lane(store, config, paused=True)
    with browser.new_context() as context:
        page = opened(context.new_page(), f"{address}/?{encode([config])}", charts=0)
        store.control(run.id, "step")
        wait_for(lambda: progress(page).startswith("Paused at step 0 of"))
        context.set_offline(True)
        for step in range(20):  # it goes on unseen
            store.control(run.id, "step")
            run.reach_step(step + 2)
        assert progress(page).startswith("Paused at step 0 of")
        page.locator(".lost", has_text="Connection lost").wait_for()
        context.set_offline(False)
        page.locator(".lost").wait_for(state="hidden")
        wait_for(lambda: progress(page).startswith("Paused at step 20 of"))
        store.control(run.id, "resume")
        wait_for(lambda: "loss" in chip(page, 0))
        assert run.status == "finished"
        assert run.steps.step.tolist() == list(range(300))
        assert page.locator(".stException").count() == 0


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
