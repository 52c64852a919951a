"""A browser that loses its line in the middle of a run, and a server that dies and comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from backend_kit import Lane
from browser_kit import chip, opened, server, text_now, wait_for
from faults_kit import checkpoint, overwritten
from playwright.sync_api import Browser

from normviz import RunConfig
from normviz.links import encode
from normviz.runs.store import Store

pytestmark = pytest.mark.browser
LONG = "?v=1&lanes=1&scheme=deepnorm&depth=12&steps=20000"
"""Two minutes."""
STEPS = 300


def progress(page) -> str:
    return text_now(page, ".nv-progress:not([hidden]) span")


def test_a_browser_that_comes_back_in_the_middle_of_a_run_sees_it_to_its_end(
    browser: Browser, address: str, data: Path
) -> None:
    """The run waits between its steps, so that it is in the middle whatever the machine's speed."""
    store, config = Store(data), RunConfig(scheme="deepnorm", depth=4, steps=STEPS)
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
        context.set_offline(False)
        wait_for(lambda: progress(page).startswith("Paused at step 20 of"))
        store.control(run.id, "resume")
        wait_for(
            lambda: chip(page, 0).startswith(("learned", "solved", "at chance", "trained", "above"))
        )
        assert run.status == "finished"
        assert run.steps.step.tolist() == list(range(STEPS))
        assert page.locator(".stException").count() == 0


def test_a_server_that_is_killed_and_comes_back_says_what_became_of_the_run(
    browser: Browser, tmp_path: Path
) -> None:
    with server(tmp_path) as (address, process), browser.new_context() as context:
        page = opened(context.new_page(), f"{address}/{LONG}", charts=0)
        page.locator(".st-key-train button:visible").first.click()
        wait_for(lambda: "steps/s" in progress(page))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
        port = str(urlsplit(address).port)
        command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
        again = subprocess.Popen(
            [*command, "--port", port, "--data", str(tmp_path)], stdout=subprocess.DEVNULL
        )
        try:
            wait_for(lambda: chip(page, 0).startswith("failed after"))
            assert "kept" in chip(page, 0)
        finally:
            again.terminate()
            again.wait(120)


def test_a_store_that_is_damaged_while_it_trains_is_set_aside_and_training_goes_on(
    browser: Browser, tmp_path: Path
) -> None:
    with server(tmp_path) as (address, _), browser.new_context() as context:
        page = opened(context.new_page(), f"{address}/{LONG}", charts=0)
        page.locator(".st-key-train button:visible").first.click()
        wait_for(lambda: "steps/s" in progress(page))
        overwritten(checkpoint(Store(tmp_path)))
        page.get_by_text("was damaged").wait_for()
        (kept,) = tmp_path.glob("normviz-aside-*.sqlite")
        assert kept.name in page.locator("[data-testid=stAlert]").first.inner_text()
        fresh = opened(context.new_page(), f"{address}/?v=1&lanes=1&depth=2&steps=30", charts=0)
        fresh.locator(".st-key-train button:visible").first.click()
        wait_for(lambda: Store(tmp_path).run(_last(tmp_path)).status == "finished")  # pyright: ignore
        assert page.locator(".stException").count() == fresh.locator(".stException").count() == 0


def _last(folder: Path) -> int:
    return Store(folder).db.connection.execute("SELECT MAX(id) FROM runs").fetchone()[0]
