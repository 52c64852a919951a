"""The page of a static site that trains, in headless Chromium: without a network, and from a disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser_kit import PATIENCE_MS, barriers, files_at
from live_kit import put_live_page
from playwright.sync_api import Browser, Page

from normviz import RunConfig, train
from normviz.browser.page import live_page
from normviz.home import shipped
from normviz.lessons.presets import PRESETS
from normviz.runs import Recording, collect
from normviz.runs.archive import load
from normviz.runs.lane import Lane

pytestmark = pytest.mark.browser
SCHEMES, NORMS, DEPTHS = ("pre", "post"), ("layernorm", "dyt"), (4, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in a folder, and the page as one file beside it."""
    out = tmp_path_factory.mktemp("live")
    runs: dict[str, Recording] = {
        it.config.key: it
        for path in Path(shipped("assets"), "runs").glob("hero*.npz")
        for it in load(path)
    }
    hero = [Lane(n, c, (runs[c.key],)) for n, c in zip("AB", PRESETS["hero"].lanes(), strict=True)]
    put_live_page(out, [hero], DEPTHS, NORMS)
    ((_, whole),) = live_page([hero], schemes=SCHEMES, depths=DEPTHS[:1], one_file=True)
    (out / "one_file.html").write_bytes(whole)
    return out


@contextmanager
def opened(browser: Browser, url: str, width: int = 1280) -> Iterator[Page]:
    """The page once its scripts stand. At the end it must have thrown nothing."""
    with browser.new_context(viewport={"width": width, "height": 812}) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(url)
        page.wait_for_function("globalThis.normvizPage")
        page.evaluate("normvizPage.then((live) => { globalThis.live = live; })")
        yield page
        assert wrong == []


def trained(page: Page) -> list[list[float]]:
    """Press Train, and wait for the end: the losses of both lanes."""
    page.get_by_role("button", name="Train", exact=True).click()
    page.locator("#note", has_text="Both lanes were trained on this device.").wait_for()
    page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
    return page.evaluate("live.duel.lanes.map((lane) => lane.loss)")


def test_a_finished_duel_replays_and_others_train_without_a_network(
    browser: Browser, folder: Path
) -> None:
    """Curves and verdicts of a new duel are the native engine's; buttons act on both lanes."""
    with files_at(folder) as address, opened(browser, f"{address}/live.html") as page:
        page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
        page.locator("#note", has_text="ships with NormViz").wait_for()
        assert page.locator("#verdict1").inner_text().startswith("at chance")
        page.get_by_text("More settings").click()
        assert barriers(page) == []
        page.wait_for_function("Object.keys(live.kept).length === 3")  # the module, two placements
        for i in (0, 1):
            page.locator(f"#depth{i}").select_option("4")
        assert page.locator(".nv-earlier").count() == 2  # the charts are of other settings
        page.context.set_offline(True)
        page.locator("#steps").fill("40")
        page.locator("#seed").fill("3")
        page.locator("#seed").blur()
        assert page.url.endswith("?v=1&scheme=pre,post&depth=4&steps=40&init_seed=3&data_seed=3")
        losses = trained(page)
        for scheme, found, lane in zip(SCHEMES, losses, (0, 1), strict=True):
            it = collect(
                train(RunConfig(scheme=scheme, depth=4, steps=40, init_seed=3, data_seed=3))
            )
            assert found[:10] == pytest.approx(it.losses[:10].tolist(), rel=1e-5)
            assert page.locator(f"#verdict{lane}").inner_text() == it.verdict.sentence
        for view, place in (
            ("Signal walk", ".nv-walk-lane svg"),
            ("First, middle, last", ".nv-lines canvas"),
            ("A ÷ B", ".nv-ratio canvas"),
        ):
            page.get_by_label(view).check()
            page.locator(place).first.wait_for()

    link = "v=1&scheme=pre,post&norm=layernorm,dyt&depth=4&steps=20000"
    with files_at(folder) as address, opened(browser, f"{address}/live.html?{link}") as page:
        page.get_by_role("button", name="Train", exact=True).click()
        page.wait_for_function("live.duel?.lanes.every((lane) => lane.at > 20)")
        page.get_by_role("button", name="Pause").click()
        at = "live.duel.lanes.every((lane) => lane.at === live.granted)"
        page.wait_for_function(at)
        assert [page.locator(f"#verdict{i}").inner_text() for i in (0, 1)] == ["paused"] * 2
        before = page.evaluate("live.granted")
        page.get_by_role("button", name="Step", exact=True).click()
        page.wait_for_function(f"{at} && live.granted === {before + 1}")
        page.locator("#rate").fill("0.01")
        page.locator("#rate").blur()
        edits = page.evaluate("live.duel.lanes.map((lane) => lane.edits)")
        assert edits == [[[before + 1, 0.01]]] * 2
        page.get_by_role("button", name="Go on").click()
        page.wait_for_function(f"live.duel.lanes.every((lane) => lane.at > {before + 20})")
        page.get_by_role("button", name="Stop").click()
        page.locator("#verdict0", has_text="stopped after ").wait_for()
        page.get_by_text("More settings").click()
        page.locator("#lr0").fill("-1")
        page.locator("#lr0").blur()
        page.locator("#problem", has_text="lr is -1, allowed is a number above 0").wait_for()


def test_one_file_trains_from_a_disk_on_a_narrow_screen_with_a_slow_cpu(
    browser: Browser, folder: Path
) -> None:
    file = (folder / "one_file.html").as_uri()
    link = "v=1&scheme=post&depth=4&task=prose&steps=30&init=xavier,torch"
    with opened(browser, f"{file}?{link}", 375) as page:
        assert page.evaluate("document.querySelector('#player').getBoundingClientRect().top") < 500
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        losses = trained(page)
        it = collect(train(RunConfig(scheme="post", depth=4, task="prose", steps=30)))
        assert [len(some) for some in losses] == [30, 30]
        assert losses[0][:10] == pytest.approx(it.losses[:10].tolist(), rel=1e-4)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        assert [url for url in asked if not url.startswith(("blob:", "data:"))] == []


def test_a_browser_without_simd_replays_and_says_so(browser: Browser, folder: Path) -> None:
    with files_at(folder) as address, browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script("WebAssembly.validate = () => false;")
        page.goto(f"{address}/live.html")
        page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 3")
        assert "it lacks WebAssembly with SIMD" in page.locator("#problem").inner_text()
        assert page.locator("#settings").is_hidden()
