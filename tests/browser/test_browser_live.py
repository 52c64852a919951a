"""The page of a static site that trains: in Chromium, without a network once it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser_kit import PATIENCE_MS, files_at
from live_kit import put_live_page
from playwright.sync_api import Browser, Page

from normviz import RunConfig, train
from normviz.duel.presets import PRESETS
from normviz.export.lane import ExportLane
from normviz.export.live import live_page
from normviz.home import shipped
from normviz.runs import Recording, collect
from normviz.runs.archive import load

SCHEMES, NORMS, DEPTHS = ("pre", "post"), ("layernorm", "dyt"), (4, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in a folder, the page as one file beside it, and a page that has it in a frame."""
    out = tmp_path_factory.mktemp("live")
    runs: dict[str, Recording] = {
        it.config.key: it
        for path in Path(shipped("assets"), "runs").glob("hero*.npz")
        for it in load(path)
    }
    hero = [
        ExportLane(n, c, runs[c.key]) for n, c in zip("AB", PRESETS["hero"].lanes(), strict=True)
    ]
    put_live_page(out, [hero], DEPTHS, NORMS)
    ((_, whole),) = live_page([hero], schemes=SCHEMES, depths=DEPTHS[:1], one_file=True)
    (out / "one_file.html").write_bytes(whole)
    return out


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with files_at(folder) as found:
        yield found


def opened(browser: Browser, url: str, width: int = 1280) -> tuple[Page, list[str]]:
    page = browser.new_page(viewport={"width": width, "height": 812})
    page.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(url)
    page.wait_for_function("globalThis.normvizPage")
    page.evaluate("normvizPage.then((live) => { globalThis.live = live; })")
    return page, wrong


def trained(page: Page) -> list[list[float]]:
    """Press Train, and wait for the end: the losses of both lanes."""
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function(
        "document.querySelector('#note').textContent === 'Both lanes were trained on this device.'"
    )
    page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
    return page.evaluate("live.duel.lanes.map((lane) => lane.loss)")


@pytest.mark.browser
def test_a_finished_duel_replays_and_another_one_trains_without_a_network(
    browser: Browser, address: str
) -> None:
    page, wrong = opened(browser, f"{address}/live.html")
    page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
    page.wait_for_function(
        "document.querySelector('#note').textContent.includes('ships with NormViz')"
    )
    assert page.locator("#verdict1").inner_text().startswith("at chance so far")
    for chart in ("loss", "bars"):
        box = page.locator(f".nv-{chart}").bounding_box()
        assert box and box["y"] + box["height"] <= 720  # all of it in the first screen of a laptop
    page.get_by_text("More settings").click()
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    for i in (0, 1):
        page.locator(f"#depth{i}").select_option("4")
    assert page.locator(".nv-earlier").count() == 2  # the charts are of other settings
    assert "earlier settings" in page.locator("#note").inner_text()
    for i in (0, 1):
        page.locator(f"#depth{i}").select_option("12")
    page.wait_for_function("!document.querySelector('.nv-earlier')")
    assert "ships with NormViz" in page.locator("#note").inner_text()
    page.wait_for_function("Object.keys(live.kept).length === 3")  # the module and two placements
    for i in (0, 1):
        page.locator(f"#depth{i}").select_option("4")
    page.context.set_offline(True)
    page.locator("#steps").fill("40")
    page.locator("#seed").fill("3")
    page.locator("#seed").blur()
    assert page.url.endswith("?v=1&scheme=pre,post&depth=4&steps=40&init_seed=3&data_seed=3")
    assert page.locator("#app").is_hidden()
    losses = trained(page)
    for scheme, found, lane in zip(SCHEMES, losses, (0, 1), strict=True):
        it = collect(train(RunConfig(scheme=scheme, depth=4, steps=40, init_seed=3, data_seed=3)))
        assert found[:10] == pytest.approx(it.losses[:10].tolist(), rel=1e-5)
        assert page.locator(f"#verdict{lane}").inner_text() == it.verdict.sentence
    assert page.evaluate("Math.max(...live.duel.lanes.map((lane) => lane.bytes))") < 32 * 2**20
    for view, key in (
        ("Signal walk", "walk"),
        ("First, middle, last", "lines"),
        ("A ÷ B", "ratio"),
    ):
        page.get_by_label(view).check()
        page.wait_for_function(f"live.player.what.view === '{key}'")
    page.wait_for_selector(".nv-ratio canvas")
    assert wrong == []
    page.close()


@pytest.mark.browser
def test_one_file_trains_from_a_disk_on_a_narrow_screen_with_a_slow_cpu(
    browser: Browser, folder: Path
) -> None:
    page, wrong = opened(
        browser,
        f"file://{folder}/one_file.html?v=1&scheme=post&depth=4&task=prose&steps=30&init=xavier,torch",
        375,
    )
    assert page.evaluate("document.querySelector('#player').getBoundingClientRect().top") < 500
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    losses = trained(page)
    it = collect(train(RunConfig(scheme="post", depth=4, task="prose", steps=30)))
    assert [len(some) for some in losses] == [30, 30]
    assert losses[0][:10] == pytest.approx(it.losses[:10].tolist(), rel=1e-4)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert [url for url in asked if not url.startswith(("blob:", "data:"))] == [] and wrong == []
    page.close()


@pytest.mark.browser
def test_pause_step_rate_and_stop_act_on_both_lanes_at_one_step(
    browser: Browser, address: str
) -> None:
    link = "v=1&scheme=pre,post&norm=layernorm,dyt&depth=4&steps=20000"
    page, wrong = opened(browser, f"{address}/live.html?{link}")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_function("live.duel?.lanes.every((lane) => lane.at > 20)")
    page.get_by_role("button", name="Pause").click()
    at = "live.duel.lanes.every((lane) => lane.at === live.granted)"
    page.wait_for_function(at)
    assert (
        page.locator("#verdict0").inner_text() == page.locator("#verdict1").inner_text() == "paused"
    )
    before = page.evaluate("live.granted")
    page.get_by_role("button", name="Step").click()
    page.wait_for_function(f"{at} && live.granted === {before + 1}")
    page.locator("#rate").fill("0.01")
    page.locator("#rate").blur()
    assert page.evaluate("live.duel.lanes.map((lane) => lane.edits)") == [[[before + 1, 0.01]]] * 2
    page.get_by_role("button", name="Go on").click()
    page.wait_for_function(f"live.duel.lanes.every((lane) => lane.at > {before + 20})")
    assert page.locator("#verdict0").inner_text() == "training"
    page.get_by_role("button", name="Stop").click()
    assert page.locator("#verdict0").inner_text().startswith("stopped after ")
    page.get_by_text("More settings").click()
    page.locator("#lr0").fill("-1")
    page.locator("#lr0").blur()
    assert (
        "lr is -1, allowed is a number above 0, up to 10." in page.locator("#problem").inner_text()
    )
    assert wrong == []
    page.close()


@pytest.mark.browser
def test_it_trains_in_a_frame_of_another_origin(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    framed = (
        f'<iframe src="{address}/live.html?v=1&depth=4&steps=3" width="900" height="900"></iframe>'
    )
    (tmp_path / "other.html").write_text(framed)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    with files_at(tmp_path) as other:
        page.goto(f"{other}/other.html")
        frame = page.frame_locator("iframe")
        frame.get_by_role("button", name="Train", exact=True).click()
        frame.get_by_text("Both lanes were trained on this device.").wait_for()
        assert frame.locator("#verdict0").inner_text().startswith("too short to judge")
    page.close()


@pytest.mark.browser
def test_a_browser_without_simd_replays_and_says_so(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.add_init_script("WebAssembly.validate = () => false;")
    page.goto(f"{address}/live.html")
    page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
    assert "it lacks WebAssembly with SIMD" in page.locator("#problem").inner_text()
    assert page.locator("#settings").is_hidden()
    page.close()
