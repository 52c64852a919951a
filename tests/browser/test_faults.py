"""Processes that are killed while a visitor looks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_kit import chip, opened, server, text_now, wait_for
from playwright.sync_api import Browser, Page

from normviz.runs import Run
from normviz.runs.store import Store

pytestmark = pytest.mark.browser


def progress(page: Page) -> str:
    return text_now(page, ".nv-progress:not([hidden]) span")


def runs(store: Store) -> list[Run]:
    found = "SELECT id FROM runs WHERE origin = 'here' ORDER BY id"
    rows = store.db.connection.execute(found).fetchall()
    return [run for row in rows if (run := store.run(row["id"]))]


def test_a_killed_worker_and_a_killed_server(browser: Browser, tmp_path: Path) -> None:
    """The lane of the worker fails with its curves, the other one goes on. With the server, supervisor and
    workers leave, no row is lost, and the server that comes back says so on the page that is still open."""
    store = Store(tmp_path)
    with server(tmp_path) as (address, process), browser.new_context() as context:
        link = "v=1&lanes=2&scheme=pre,post&steps=20000"
        page = opened(context.new_page(), f"{address}/?{link}", charts=0)
        page.locator(".st-key-train button:visible").first.click()
        wait_for(lambda: [len(store.steps(run).step) > 0 for run in runs(store)] == [True, True])
        found = "SELECT pid FROM runs WHERE status = 'running' AND config LIKE '%post%'"
        os.kill(store.db.connection.execute(found).fetchone()["pid"], signal.SIGKILL)
        wait_for(lambda: "failed after" in chip(page, 1) and "kept" in chip(page, 1))
        reached = len(store.steps(runs(store)[0]).step)
        wait_for(lambda: len(store.steps(runs(store)[0]).step) > reached)
        assert chip(page, 0) == "training"

        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
        wait_for(lambda: not store.supervisor()[0])
        wait_for(lambda: not any(run.is_open for run in runs(store)))
        assert [run.status for run in runs(store)] == ["failed", "failed"]
        assert len(store.steps(runs(store)[0]).step) > reached

        again = subprocess.Popen(
            [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1",
             "--port", str(urlsplit(address).port), "--data", str(tmp_path)],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(lambda: chip(page, 0).startswith("failed after"))
            assert "kept" in chip(page, 0)
        finally:
            again.terminate()
            again.wait(120)
