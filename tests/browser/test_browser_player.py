"""The charts in a real browser: one cursor, hands and keys, views, and what can be taken away."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, opened, wait_for
from charts_kit import STEPS, make
from playwright.sync_api import Browser, Download, Locator, Page, WebSocketRoute

from normviz import RunConfig, player

pytestmark = pytest.mark.browser


@contextmanager
def tab(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """A tab that stands still at the end of a duel until it is moved, and the errors that it prints."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 1200}, reduced_motion="reduce", accept_downloads=True
    )
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_default_timeout(PATIENCE_MS)
    yield page, errors
    context.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A new tab, which must not print errors."""
    with tab(browser) as (it, errors):
        yield it
        assert not errors


@pytest.fixture(scope="module")
def opening(browser: Browser, address: str) -> Iterator[tuple[Page, list[str]]]:
    """The opening duel in one tab for the tests of this file that need nothing else."""
    with tab(browser) as (it, errors):
        still(it, address)
        yield it, errors


@pytest.fixture
def hero(opening: tuple[Page, list[str]]) -> Iterator[Page]:
    """The opening duel as it opens, which must not print errors: its default view, at the last step."""
    it, errors = opening
    it.get_by_label("Every layer").check()
    it.locator(".nv-probe").select_option("grad_block")
    it.locator(".nv-linear").uncheck()
    it.locator(".nv-smooth").select_option(label="off")
    it.locator(".nv-step input").fill("199")
    it.locator(".nv-step input").blur()
    it.keyboard.press("Escape")
    it.locator(".nv-heat1 canvas").first.wait_for()
    wait_for(lambda: step(it) == 199 and "layer" not in readout(it))
    yield it
    assert not errors


def readout(page: Page) -> str:
    return page.locator(".nv-readout").inner_text()


def step(page: Page) -> int:
    return int(page.locator(".nv-step output").inner_text())


def rule(page: Page, chart: str = "heat0") -> float:
    """Where the cursor's rule stands on a heatmap, in pixels of the page."""
    box = page.locator(f".nv-{chart} .nv-rule").bounding_box()
    assert box
    return box["x"]


def at(place: Locator, x: float, y: float) -> dict[str, float]:
    """A point of a chart, as shares of its width and height."""
    box = place.bounding_box()
    assert box
    return {"x": box["width"] * x, "y": box["height"] * y}


def still(page: Page, address: str) -> Page:
    opened(page, address, charts=4)
    wait_for(lambda: step(page) == 199)
    return page


def test_a_pointer_on_one_chart_moves_all_and_a_click_keeps_it(hero: Page) -> None:
    page = hero
    before = rule(page)
    loss = page.locator(".nv-loss [role=img]")
    loss.hover(position=at(loss, 0.4, 0.5))
    wait_for(lambda: 20 < step(page) < 120)
    wait_for(lambda: rule(page) < before - 50)
    pointed = step(page)
    assert f"Step {pointed} " in readout(page)
    page.locator(".nv-definition").hover()  # away again
    wait_for(lambda: step(page) == 199)
    heat = page.locator(".nv-heat1 [role=img]")
    heat.click(position=at(heat, 0.5, 0.5))
    page.locator(".nv-definition").hover()
    wait_for(lambda: 50 < step(page) < 150)
    wait_for(
        lambda: (found := re.search(r"layer (\d+):", readout(page))) and 3 <= int(found[1]) <= 10
    )
    for chart in ("bars", "heat0", "heat1"):
        page.locator(f".nv-{chart} .nv-band").wait_for()
    assert abs(rule(page, "heat0") - page.locator(".nv-heat0").bounding_box()["x"]  # type: ignore[index]
               - rule(page, "heat1") + page.locator(".nv-heat1").bounding_box()["x"]) < 2  # type: ignore[index]  # fmt: skip
    page.keyboard.press("Escape")
    wait_for(lambda: "layer" not in readout(page))


def test_keys_move_and_play(hero: Page) -> None:
    page = hero
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    wait_for(lambda: step(page) == 198)
    page.keyboard.press("Shift+ArrowLeft")
    wait_for(lambda: step(page) == 188)
    page.keyboard.press("ArrowRight")
    wait_for(lambda: step(page) == 189)
    page.locator(".nv-step input").fill("9")
    page.locator(".nv-step input").blur()
    page.keyboard.press("Space")
    seen: set[int] = set()
    wait_for(lambda: seen.add(step(page)) or len(seen) > 3)
    page.locator(".nv-play").focus()
    page.keyboard.press("Home")
    wait_for(lambda: step(page) == 0)
    # Typing in a field of the page moves nothing.
    page.locator(
        ".st-key-knobs input:not([type=range], [type=checkbox], [type=radio])"
    ).first.click()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert step(page) == 0


def test_the_table_has_the_numbers_of_the_step(hero: Page) -> None:
    page = hero
    page.get_by_text("Numbers at this step").click()
    rows = page.locator(".nv-table tbody tr")
    wait_for(lambda: rows.count() == 12)
    first, last = rows.last.inner_text().split(), rows.first.inner_text().split()
    assert (first[0], last[0]) == ("1", "12")
    assert float(first[2]) < 1e-3 < float(last[2])  # Post-LN, after training


def test_every_view_of_every_quantity_draws(hero: Page) -> None:
    page = hero
    page.locator(".nv-linear").check()
    page.locator(".nv-smooth").select_option(label="much")
    for view, place in (
        ("A ÷ B", ".nv-ratio canvas"),
        ("First, middle, last", ".nv-lines canvas"),
        ("Signal walk", ".nv-walk-lane svg"),
    ):
        page.get_by_label(view).check()
        page.locator(place).first.wait_for()
        assert page.locator(".nv-heat0").count() == 0
    page.wait_for_url("**view=walk*")
    assert "times less" in page.locator(".nv-walk-lane").nth(1).inner_text()
    page.get_by_label("Every layer").check()
    page.locator(".nv-heat1 canvas").first.wait_for()
    for option in page.locator(".nv-probe option").all():
        key, label = option.get_attribute("value"), option.inner_text()
        page.locator(".nv-probe").select_option(key)
        page.locator(".nv-bars figcaption", has_text=label).wait_for()
        if key != "grad_block":  # a link leaves it out
            page.wait_for_url(f"**probe={key}*")


def saved(page: Page, button: Locator, folder: Path) -> Path:
    with page.expect_download() as waiting:
        button.click()
    download: Download = waiting.value
    path = folder / download.suggested_filename
    download.save_as(path)
    return path


def test_what_is_taken_away_opens(hero: Page, browser: Browser, tmp_path: Path) -> None:
    """The replay opens from disk with the network off; the script repeats the run's loss."""
    page = hero
    page.get_by_text("Download", exact=True).click()

    def take(name: str) -> Path:
        return saved(page, page.get_by_role("button", name=name, exact=True), tmp_path)

    replay = take("Replay (HTML)")
    for kind in ("CSV", "Parquet"):
        with zipfile.ZipFile(take(f"Numbers ({kind})")) as files:
            assert "config.json" in files.namelist()
    assert len(json.loads(take("Settings (JSON)").read_text())["lanes"]) == 2
    script = take("Lane A as a script (.py)")
    page.keyboard.press("Escape")
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    final = re.search(r"final loss (\d\.\d+)", said.stdout)
    assert final and f"loss {float(final[1]):.2f}" in page.locator(".st-key-card_0").inner_text()

    with browser.new_context(offline=True, reduced_motion="reduce") as alone:
        other = alone.new_page()
        errors: list[str] = []
        other.on("pageerror", lambda error: errors.append(str(error)))
        other.goto(replay.as_uri())
        wait_for(lambda: other.locator(".nv canvas").count() >= 4)
        wait_for(lambda: step(other) == 199)
        assert readout(other) == readout(page)
        assert "Post-LN" in pictures(other, "heat1", tmp_path)[1]
        other.locator(".nv-probe").select_option("token_cosine")
        other.get_by_label("Signal walk").check()
        other.locator(".nv-walk-lane svg").first.wait_for()
        other.locator(".nv-play").click()
        wait_for(lambda: 0 < step(other) < 150)
        assert not errors


def size(png: Path) -> tuple[int, int]:
    """Pixels across and down, from the header."""
    header = png.read_bytes()[:24]
    assert header.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


def pictures(page: Page, chart: str, folder: Path) -> tuple[Path, str]:
    """The file of a chart as PNG, and its SVG; both are named after the chart and the step."""
    buttons = page.locator(f".nv-{chart} .nv-save")
    png, svg = (saved(page, buttons.filter(has_text=kind), folder) for kind in ("PNG", "SVG"))
    name = f"normviz-pre-ln-against-post-ln-{chart}-step{step(page)}"
    assert (png.name, svg.name) == (f"{name}.png", f"{name}.svg")
    words = svg.read_text("utf-8")
    assert words.startswith("<svg") and 'width="720"' in words
    assert size(png)[0] == 2 * 720
    return png, words


def unnumbered(svg: str) -> str:
    """Vega numbers the clips of all pictures of a page."""
    return re.sub(r"clip\d+", "clip", svg)


def test_charts_become_pictures_without_the_server(
    hero: Page, address: str, tmp_path: Path
) -> None:
    """With legend, title and axes, at the cursor's step, not smoothed and without the zoom."""
    page = hero
    page.locator(".nv-smooth").select_option(label="much")
    page.locator(".nv-step input").fill("150")
    wait_for(lambda: step(page) == 150)
    asked: list[str] = []
    page.on("request", lambda request: request.url.startswith("http") and asked.append(request.url))
    expected = {
        "loss": ("A Pre-LN", "B Post-LN", "loss (nats per token)", "chance"),
        "bars": ("A Pre-LN", "B Post-LN", "layer", "step 149"),
        "heat1": ("B Post-LN", "layer", "step", "data:image/png"),
    }
    for chart, words in expected.items():
        _, svg = pictures(page, chart, tmp_path)
        assert not [word for word in words if word not in svg], chart
        assert 'fill="#ffffff"' in svg
        assert "12 blocks, width 32, learning rate 0.003, 200 steps" in svg
        assert f"{address}/?v=1&amp;scheme=pre,post" in svg
    assert not asked
    smooth = (tmp_path / "normviz-pre-ln-against-post-ln-loss-step150.svg").read_text("utf-8")
    page.locator(".nv-smooth").select_option(label="off")
    assert unnumbered(pictures(page, "loss", tmp_path)[1]) == unnumbered(smooth)
    for view, chart, word in (("A ÷ B", "ratio", "quotient"), ("First, middle", "lines", "middle")):
        page.get_by_label(view).check()
        page.locator(f".nv-{chart} canvas").first.wait_for()
        wait_for(lambda: step(page) == 150)
        assert word in pictures(page, chart, tmp_path)[1]


def test_a_picture_is_the_same_on_a_phone_and_dark_on_a_dark_page(
    hero: Page, browser: Browser, address: str, tmp_path: Path
) -> None:
    """And the phone, on which a tab leads to the heatmaps, needs no sideways scroll."""
    wide = size(pictures(hero, "heat0", tmp_path)[0])
    look = {"viewport": {"width": 375, "height": 740}, "color_scheme": "dark"}
    with browser.new_context(**look, reduced_motion="reduce") as context:  # type: ignore[arg-type]
        phone = still(context.new_page(), f"{address}/?view=heat")
        phone.locator(".nv-loss canvas").wait_for()
        phone.locator(".nv-tabs button[value=time]").click()
        phone.locator(".nv-heat0 canvas").first.wait_for()
        assert_fits_a_phone(phone)
        png, svg = pictures(phone, "heat0", tmp_path)
    assert size(png) == wide
    assert 'fill="#171614"' in svg and 'fill="#c9ced6"' in svg


def test_a_picture_that_can_not_be_made_is_a_sentence(hero: Page) -> None:
    page = hero
    page.evaluate("""() => { normvizVega.kept = normvizVega.vegaEmbed;
      normvizVega.vegaEmbed = () => Promise.reject(new Error('no memory')); }""")
    page.locator(".nv-loss .nv-save").first.click()
    alert = page.locator(".nv-loss [role=alert]")
    assert alert.inner_text() == "This chart can't be saved (no memory)."
    page.locator(".nv-loss .nv-save").first.click()
    wait_for(lambda: alert.count() == 1)
    page.evaluate("() => { normvizVega.vegaEmbed = normvizVega.kept; }")


def test_embedded_it_shows_verdicts_and_charts_alone(page: Page, address: str) -> None:
    page.goto(f"{address}/?view=ratio&embed=true")
    page.locator(".nv-ratio canvas").first.wait_for()
    assert page.get_by_text("at chance so far").is_visible()
    assert page.locator(".st-key-train").count() == 0
    link = page.get_by_role("link", name="Open in NormViz").get_attribute("href")
    assert link and "scheme=pre%2Cpost" in link.replace(",", "%2C") and "embed" not in link


def assert_fits_a_phone(page: Page) -> None:
    assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= 375
    beyond = (
        "[...document.querySelectorAll('.nv *')].filter(e => e.getBoundingClientRect().right > 376)"
    )
    assert page.evaluate(f"{beyond}.map(e => e.className)") == []


def test_a_link_to_a_view_opens_it_on_a_phone_without_sideways_scroll(
    browser: Browser, address: str
) -> None:
    with browser.new_context(viewport={"width": 375, "height": 740}) as phone:
        page = opened(phone.new_page(), f"{address}/?probe=stream_rms&view=walk", charts=2)
        page.locator(".nv-walk-lane svg").first.wait_for()
        assert page.locator(".nv-probe").input_value() == "stream_rms"
        assert_fits_a_phone(page)
        opened(page, f"{address}/?view=ratio", charts=2)
        page.locator(".nv-ratio canvas").first.wait_for()
        assert_fits_a_phone(page)


@pytest.mark.usefixtures("hero")
def test_reduced_motion_starts_at_the_end_and_others_replay(browser: Browser, address: str) -> None:
    """The tab of this file, in which motion is reduced, opened at the end."""
    with browser.new_context(reduced_motion="no-preference") as moving:
        other = opened(moving.new_page(), address, charts=4)
        wait_for(lambda: step(other) < 199)
        seen: set[int] = set()
        wait_for(lambda: seen.add(step(other)) or len(seen) > 4)


def test_where_many_watch_lanes_that_end_soon_after_one_another_ask_for_the_page_once(
    page: Page, address: str
) -> None:
    lines, asked = list[WebSocketRoute](), list[bytes]()

    def numbers(line: WebSocketRoute) -> None:
        line.connect_to_server()
        lines.append(line)

    def sent(frame: str | bytes) -> None:
        if b"changed" in (data := frame if isinstance(frame, bytes) else frame.encode()):
            asked.append(data)

    page.route_web_socket(re.compile("/normviz/numbers$"), numbers)
    page.on("websocket", lambda line: "_stcore" in line.url and line.on("framesent", sent))
    still(page, address)

    def told(signature: str, spread: float) -> None:
        status = {"signature": signature, "done": 1, "total": 2, "words": signature}
        lines[-1].send(json.dumps({"status": status | ({"spread": spread} if spread else {})}))
        wait_for(lambda: signature in page.locator(".nv-progress span").inner_text())

    page.evaluate("Math.random = () => 0.5")
    told("one ends", 16.0)
    told("the other one too", 16.0)
    wait_for(lambda: page.wait_for_timeout(100) or asked)  # frames come while Playwright waits
    page.wait_for_timeout(1500)
    assert len(asked) == 1 and b"the other one too" in asked[0]
    told("all is over", 0.0)  # alone again: at once
    wait_for(lambda: page.wait_for_timeout(100) or len(asked) == 2)
    assert b"all is over" in asked[1]


# Vega as it is, but for one chart.
ONE_FAILS = """
let vega;
Object.defineProperty(globalThis, "normvizVega", { get: () => vega, set(it) { vega = {
  vegaEmbed: (room, ...more) => room.closest(".nv-bars") ? Promise.reject(new Error("no canvas"))
    : it.vegaEmbed(room, ...more) }; } });
globalThis.frames_ = 0;
const next = requestAnimationFrame;
globalThis.requestAnimationFrame = (frame) => { globalThis.frames_ += 1; return next(frame); };
"""


def test_a_chart_that_can_not_be_drawn_says_so_and_the_others_go_on(
    page: Page, tmp_path: Path
) -> None:
    lanes = {"grad_block": [make(), make("post")]}
    (tmp_path / "it.html").write_text(player.page("t", "w", lanes, [RunConfig()] * 2), "utf-8")
    page.add_init_script(ONE_FAILS)
    page.goto((tmp_path / "it.html").as_uri())
    assert page.locator(".nv-bars [role=alert]").inner_text() == (
        "This chart can't be drawn (no canvas): reload the page."
    )
    for chart in ("loss", "heat0", "heat1"):
        page.locator(f".nv-{chart} canvas").first.wait_for()
    assert page.locator(".nv-bars canvas").count() == 0
    wait_for(lambda: step(page) == STEPS - 1)
    before = rule(page)
    page.locator(".nv-step input").fill("9")
    wait_for(lambda: rule(page) < before - 50)
    asked = page.evaluate("frames_")
    page.wait_for_timeout(500)
    assert page.evaluate("frames_") - asked < 5, "it draws without end"
