"""A shared server in real browsers: who is who, and what ends when the last page is closed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser_kit import chip, chromium, opened, server, wait_for

from normviz import RunConfig
from normviz.links import encode
from normviz.runs.store import Run, Store

pytestmark = pytest.mark.browser

LONG = RunConfig(depth=48, steps=20_000, lr=1e-4)
"""Several minutes."""
SHORTER_GRACE = """
from dataclasses import replace
from normviz import hosted, presence
presence.BEAT_SECONDS = 1.0
hosted.LIMITS = replace(hosted.LIMITS, grace=12.0, seconds=6000.0, steps=20_000)
"""


@pytest.fixture
def _hosted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosted mode for the processes that are started, with a grace period that a test can wait for."""
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "sitecustomize.py").write_text(SHORTER_GRACE)
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'early'}{os.pathsep}{before}")
    monkeypatch.setenv("NORMVIZ_HOSTED", "1")


@pytest.mark.usefixtures("_hosted")
def test_a_run_goes_on_while_anybody_has_it_open(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def record() -> Run:
        found = store.latest(LONG.key)
        assert found is not None
        return found

    def steps() -> int:
        return len(store.steps(record()).step)

    with server(tmp_path) as (address, _), chromium() as browser:
        link = f"{address}/?{encode([LONG])}"
        mine, other = browser.new_context(), browser.new_context()
        page = opened(mine.new_page(), link, charts=0)
        page.click(".st-key-train button")
        wait_for(lambda: store.latest(LONG.key) and steps() > 2)
        run = record()
        (cookie,) = (one for one in mine.cookies() if one["name"].startswith("normviz_"))
        assert run.visitor == cookie["value"].partition(".")[0] and cookie["httpOnly"]
        assert not run.linked
        page.locator(".st-key-copy_link button").click()
        wait_for(lambda: record().linked)

        theirs = opened(other.new_page(), link)
        assert theirs.locator(".st-key-stop button:visible").first.is_disabled()
        theirs.click(".st-key-train button")
        theirs.wait_for_timeout(500)
        assert record().id == run.id  # joined, not queued again
        page.reload()  # the same visitor, another session
        page.wait_for_selector(".st-key-stop button:not([disabled])")
        mine.close()

        before = steps()
        theirs.wait_for_timeout(15_000)  # more than the grace period
        assert record().status == "running"
        wait_for(lambda: steps() > before)
        theirs.goto("about:blank")
        wait_for(lambda: record().status == "stopped")
        assert record().message == "nobody had it open any more"
        opened(theirs, link)
        wait_for(lambda: "nobody had it open any more" in chip(theirs, 0))
        theirs.goto(f"{address}/runs")
        row = theirs.locator(f".st-key-run_row_{run.id}")
        row.get_by_text("stopped unwatched after").wait_for()
