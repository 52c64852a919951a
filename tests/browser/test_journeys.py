"""What visitors do, from their first click to their last, in headless Chromium on one server."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browser_kit import (
    address_of,
    at,
    bottom,
    box,
    chip,
    has_no_barrier,
    idle,
    moved,
    opened,
    press,
    progress,
    runs,
    stands,
    step,
    untrained_without_a_jump,
    visit,
    wait_for,
)  # fmt: skip
from playwright.sync_api import Browser, Locator, Page

from normviz import RunConfig
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.links import decode, encode
from normviz.runs.names import lane_name
from normviz.runs.store import Store

pytestmark = pytest.mark.browser


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
    look at it in all ways, turn the switch, go through states and back, open settings, end the tour."""
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
        # A run that ships.
        page.locator(".st-key-lane1_scheme").get_by_text("Peri-LN", exact=True).click()
        wait_for(lambda: "learned" in chip(page, 1) and block.get_attribute("src") != before)
        idle(page)
        page.locator(".st-key-lane1_open button:visible").first.click()
        wait_for(lambda: page.locator("[class*='st-key-lane1_to_'] button:visible").count() >= 46)
        page.locator(".st-key-lane1_to_resp button:visible").first.click()
        page.wait_for_url("**scheme=pre%2Cresp*")
        wait_for(lambda: page.locator(".st-key-lane1_sheet:visible").count() == 0)
        go_on_and_back(page)
        look_at_settings(page, address)
        end_the_tour(page, address)


def go_on_and_back(page: Page) -> None:
    """After two placements: a change that trains, a preset, two steps of the tour, another page. All come
    back, and the navigation leads to the duel that was there."""
    hero = PRESETS["hero"].lanes()
    peri, resp = ((hero[0], hero[1].replace(scheme=key)) for key in ("peri", "resp"))
    shallow = tuple(lane.replace(depth=1) for lane in resp)  # trains in a moment
    warmup = PRESETS["warmup"].lanes()
    wait_for(lambda: shows(page, resp))
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
    stands_in_sight(page, 1)
    place = box(page, ".st-key-story_next button")
    page.keyboard.press("n")
    stands_in_sight(page, 2)
    assert box(page, ".st-key-story_next button") == place
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
    for lanes in (STEPS[1].lanes(), STEPS[0].lanes(), warmup, shallow, resp, peri, hero):
        page.evaluate("history.back()")
        wait_for(lambda lanes=lanes: shows(page, lanes))
        idle(page)
    assert "learned" in chip(page, 0)
    page.evaluate("history.forward()")
    wait_for(lambda: shows(page, peri))
    wait_for(lambda: page.evaluate("document.querySelector('.stMain').scrollTop") == 0)


def end_the_tour(page: Page, address: str) -> None:
    """From its last step but one. In a step, and in the Duel page at the end, axe finds nothing."""
    ends = len(STEPS) - 1
    page.goto(f"{address}/?story={ends}")
    stands_in_sight(page, ends)
    has_no_barrier(page)
    place = box(page, ".st-key-story_next button")
    page.keyboard.press("n")
    stands_in_sight(page, ends + 1)
    assert box(page, ".st-key-story_next button") == place, "also where it leads nowhere"
    press(page, "story_play")
    page.locator(".st-key-tour button").first.wait_for()
    has_no_barrier(page)


def stands_in_sight(page: Page, number: int) -> None:
    """The curves of a step are on the screen with its words; its question is answered with the keyboard."""
    stands(page, number)
    wait_for(lambda: f"story={number}" in address_of(page))
    wait_for(lambda: box(page, ".nv-loss")[1] < 500)


def look_at_settings(page: Page, address: str) -> None:
    """The settings of one lane after another show what the lane has, and a look changes nothing."""
    link = "scheme=pre,post&norm=rmsnorm&qk_norm=head&depth=32"
    opened(page, f"{address}/?v=1&{link}", charts=0)
    untrained_without_a_jump(page)
    for lane in (0, 1):
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


def test_a_result_is_shared_and_taken_away(browser: Browser, address: str, tmp_path: Path) -> None:
    """Train by a change alone, copy the link, open it in a fresh browser; a replay without a network, tables,
    a script, pictures, charts in a frame."""
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
            has_no_barrier(fresh, both=False)

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
    """Take all away. Returns the replay."""
    page.get_by_text("Download", exact=True).click()

    def take(name: str) -> Path:
        return saved(page, page.get_by_role("button", name=name, exact=True), folder)

    for kind in ("CSV", "Parquet"):
        with zipfile.ZipFile(take(f"Numbers ({kind})")) as files:
            assert "config.json" in files.namelist()
    assert len(json.loads(take("Settings (JSON)").read_text())["lanes"]) == 2
    replay, script = take("Replay (HTML)"), take("Lane A as a script (.py)")
    page.keyboard.press("Escape")
    compile(script.read_text("utf-8"), script.name, "exec")
    return replay


def test_train_pause_rate_and_stop(browser: Browser, address: str, data: Path) -> None:
    """Charts move in place, one press is one step or one edit of the rate, and what went on unseen comes with
    the network."""
    # The larger its batches the fewer points a live chart draws.
    slow = RunConfig(init_seed=999, steps=20_000, batch=32)
    lanes, store = [slow.replace(scheme=scheme) for scheme in ("pre", "post")], Store(data)
    with visit(browser, address, is_cut=True) as page:
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
        assert restyled_by_a_change(page) < 150
        for _ in range(3):  # a fragment's tick may carry a press a second time
            press(page, "step")
            done += 1
            wait_for(lambda at=done: progress(page).startswith(f"Paused at step {at} of"))
        goes_on_unseen(page, store, done)
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
        press(page, "stop")
        wait_for(lambda: all(chip(page, i).startswith("stopped after") for i in (0, 1)))
        assert len({it.index(0.01) for it in rates(store, 999)}) == 1, "at one step in both lanes"


def restyled_by_a_change(page: Page) -> int:
    """The elements whose style Chromium works out again for one element more in a lane's card.

    Ten changes a second come while a run trains: a rule of CSS may let each restyle most of the page.
    """
    browser = page.context.browser
    assert browser is not None
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    page.evaluate("""async () => {
      const frame = () => new Promise(requestAnimationFrame), added = document.createElement("span");
      added.className = added.dataset.testid = "stMarkdown";
      document.querySelector(".st-key-card_0 .stMarkdown").append(added);
      for (const _ of [1, 2]) await frame();
      added.remove();
      for (const _ of [1, 2]) await frame();
    }""")
    events = json.loads(browser.stop_tracing())["traceEvents"]
    return max(it["args"]["elementCount"] for it in events if it["name"] == "UpdateLayoutTree")


def goes_on_unseen(page: Page, store: Store, done: int) -> None:
    """Runs that are paused at a step take others while the page has no network."""
    before = progress(page)
    page.context.set_offline(True)
    for _ in range(3):
        for run in runs(store, 999):
            n = len(store.steps(run).step)
            store.control(run.id, "step")
            wait_for(lambda run=run, n=n: len(store.steps(run).step) == n + 1)
    assert progress(page) == before
    page.locator(".lost", has_text="Connection lost").wait_for()
    page.context.set_offline(False)
    page.locator(".lost").wait_for(state="hidden")
    wait_for(lambda: progress(page).startswith(f"Paused at step {done + 3} of"))


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
    page.keyboard.down("Control")

    def zooms() -> bool:
        """A chart that is being drawn takes no turn of the wheel; its visitor turns it again."""
        left, top, right, low = box(page, ".nv-loss canvas")
        page.mouse.move((left + right) / 2, (top + low) / 2)
        page.mouse.wheel(0, -400)
        page.wait_for_timeout(500)
        return page.evaluate(domain)[1] < 19_999

    wait_for(zooms)
    page.keyboard.up("Control")
    zoomed = page.evaluate(domain)
    wait_for(lambda: seen.add(progress(page)) or len(seen) >= 4)
    assert before == page.evaluate(count) > 0
    assert page.evaluate(domain) == zoomed
