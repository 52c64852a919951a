"""The page in a real browser: what a newcomer does, in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_kit import chip, opened, server, text_now, wait_for
from playwright.sync_api import Browser, Page

from normviz.runs.store import Run, Store

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab of a browser that knows nothing of earlier ones; the page must not print errors."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    errors: list[str] = []
    tab.on("console", lambda message: message.type == "error" and errors.append(message.text))
    yield tab
    assert tab.locator(".stException").count() == 0
    assert not errors
    context.close()


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button:visible").first.click()


def progress(page: Page) -> str:
    return text_now(page, ".nv-progress:not([hidden]) span")


def train_to_the_end(page: Page, store: Store) -> None:
    newest, opened = "SELECT MAX(id) FROM runs", "status IN ('queued', 'running', 'paused')"
    before = store.db.connection.execute(newest).fetchone()[0]
    found = f"SELECT COUNT(*), SUM({opened}) FROM runs WHERE id > {before}"
    press(page, "train")
    wait_for(lambda: tuple(store.db.connection.execute(found).fetchone()) == (2, 0))
    wait_for(lambda: not progress(page))


def most_steps(page: Page) -> None:
    """As many steps as the slider has, so that the runs last longer than what a test does meanwhile."""
    slider = page.locator(".st-key-knob_steps input[type=range]")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_url("**steps=5000*")


def test_the_whole_story(page: Page, browser: Browser, address: str, data: Path) -> None:
    """Open, flip a lane, train for long, see points arrive live, stop, go back, train, copy the link,
    open it; nothing asks another host."""
    hosts: set[str | None] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    opened(page, address)
    assert "learned" in chip(page, 0)
    assert "at chance so far" in chip(page, 1)

    page.locator(".st-key-lane1_scheme").get_by_text("Peri-LN", exact=True).click()
    wait_for(lambda: "learned" in chip(page, 1))  # a run that ships
    most_steps(page)
    press(page, "train")
    seen: set[str] = set()
    wait_for(lambda: seen.add(progress(page)) or len({s for s in seen if "steps/s" in s}) >= 4)

    press(page, "stop")
    wait_for(lambda: chip(page, 1).startswith("stopped after"))

    page.evaluate("history.back()")
    wait_for(lambda: all("learned" in chip(page, lane) for lane in (0, 1)))
    train_to_the_end(page, Store(data))
    wait_for(lambda: all("learned" in chip(page, lane) for lane in (0, 1)))
    verdicts = chip(page, 0), chip(page, 1)

    page.locator(".st-key-copy_link button").click()
    page.get_by_text("Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "scheme=pre,peri" in link

    with browser.new_context() as fresh:
        other = opened(fresh.new_page(), link)
        assert (chip(other, 0), chip(other, 1)) == verdicts
        assert not progress(other)
    assert hosts <= {"127.0.0.1", None}


def test_a_run_in_progress(page: Page, browser: Browser, address: str) -> None:
    """Charts move in place, it pauses, steps and goes on, a link to it shows it live, and it stops."""
    opened(page, f"{address}/?v=1&lanes=2&scheme=pre,post&steps=20000", charts=0)
    press(page, "train")
    wait_for(lambda: "steps/s" in progress(page))
    stop, charts = (page.locator(f".st-key-{key}").bounding_box() for key in ("stop", "charts"))
    assert stop and charts and stop["x"] + stop["width"] <= charts["x"]
    assert_charts_move_in_place(page)
    assert_it_pauses_steps_and_goes_on(page)
    with browser.new_context() as fresh:
        other = opened(fresh.new_page(), page.url)
        seen: set[str] = set()
        wait_for(lambda: seen.add(progress(other)) or len(seen) >= 3)
    press(page, "stop")
    wait_for(lambda: all(chip(page, lane).startswith("stopped after") for lane in (0, 1)))


def assert_charts_move_in_place(page: Page) -> None:
    """No chart is built anew, its canvas stays the same node, and zoom is kept."""
    page.wait_for_function("document.querySelectorAll('.st-key-live canvas').length >= 4")
    mark = "document.querySelectorAll('.st-key-live canvas').forEach(c => c.kept = true)"
    count = "[...document.querySelectorAll('.nv-loss canvas')].filter(c => c.kept).length"
    page.evaluate(mark)
    before, seen = page.evaluate(count), set()
    domain = "document.querySelector('.nv-root').player.charts.loss.view.scale('x').domain()"
    page.locator(".nv-loss canvas").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    wait_for(lambda: page.evaluate(domain)[1] < 19_999)
    zoomed = page.evaluate(domain)
    wait_for(lambda: seen.add(progress(page)) or len(seen) >= 4)
    assert before == page.evaluate(count) > 0
    assert page.evaluate(domain) == zoomed


def assert_it_pauses_steps_and_goes_on(page: Page) -> None:
    page.locator(".st-key-pause button:visible", has_text="Pause").click()
    wait_for(lambda: progress(page).startswith("Paused at"))
    resume = page.locator(".st-key-pause button:visible", has_text="Resume")
    assert "resume" in resume.locator("[data-testid=stIconMaterial]").inner_text()
    page.wait_for_timeout(500)
    done = int(progress(page).split()[3])
    for _ in range(20):  # a fragment's tick may carry a press a second time
        press(page, "step")
        done += 1
        wait_for(lambda at=done: progress(page).split()[3:4] == [str(at)])
    last = page.locator(".nv-step output")
    wait_for(lambda: f" {last.inner_text()}: Pre-LN against" in page.locator("h1").inner_text())
    assert page.locator("h1").inner_text().startswith("Paused at step")
    resume.click()
    wait_for(lambda: "steps/s" in progress(page))


def test_a_killed_worker_is_said_and_the_other_lane_goes_on(
    page: Page, address: str, data: Path
) -> None:
    link = "v=1&lanes=2&scheme=pre,post&depth=8&steps=400,20000"
    opened(page, f"{address}/?{link}", charts=0)
    press(page, "train")
    wait_for(lambda: "steps/s" in progress(page))
    store = Store(data)
    found = "SELECT pid FROM runs WHERE status = 'running' AND config LIKE '%post%'"
    wait_for(lambda: store.db.connection.execute(found).fetchone())  # the other lane may be first
    os.kill(store.db.connection.execute(found).fetchone()["pid"], signal.SIGKILL)
    wait_for(lambda: "failed after" in chip(page, 1) and "kept" in chip(page, 1))
    wait_for(lambda: chip(page, 0).startswith(("learned", "solved")))


def test_nothing_outlives_the_server(browser: Browser, tmp_path: Path) -> None:
    """SIGKILL of the server: supervisor and workers leave by themselves, no row is lost."""
    store = Store(tmp_path)

    def runs() -> list[Run]:
        found = "SELECT id FROM runs WHERE origin = 'here'"
        rows = store.db.connection.execute(found).fetchall()
        return [run for row in rows if (run := store.run(row["id"]))]

    with server(tmp_path) as (address, process):
        link = "v=1&lanes=2&scheme=pre,post&steps=20000"
        page = opened(browser.new_page(), f"{address}/?{link}", charts=0)
        press(page, "train")
        wait_for(lambda: [len(store.steps(run).step) > 0 for run in runs()] == [True, True])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
    wait_for(lambda: not store.supervisor()[0])
    wait_for(lambda: not any(run.is_open for run in runs()))
    for run in runs():
        assert run.status == "failed"
        assert len(store.steps(run).step) > 0
