"""A real server and a real browser for tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from normviz.cli.bench_server import free_port

CHROMIUM = next(
    (path for it in ("chromium-headless-shell", "chromium") if (path := shutil.which(it))),
    "/usr/bin/chromium-headless-shell",
)
"""Debian's Chromium without a window, which starts sooner, or the whole browser."""
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NO_POPUPS = "--disable-features=" + ",".join(
    (
        # Chromium 156 loads two pages of its own for each window, for its address bar: 0.7 s of a core.
        *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
        # Of two such switches Chromium takes the last one, so these are Playwright's.
        *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
        *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
        *(
            "ThirdPartyStoragePartitioning",
            "AvoidCorsURLLoaderRestartOnRedirect",
            "OptimizationHints",
        ),
        *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    )
)
SEEN = """
const seen = window.seen = { shift: 0, first: null, live: null };
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
const wide = (one) => one.getBoundingClientRect().width > 0;
const charts = (what) => [...document.querySelectorAll(what)].filter(wide);
const frame = () => {
  const live = charts(".nv-chart canvas, .stVegaLiteChart :is(canvas, svg.marks)");
  seen.first ??= live.length || charts("#nv-still svg").length ? performance.now() : null;
  if (live.length >= CHARTS && !document.getElementById("nv-still")) seen.live ??= performance.now();
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
"""
"""Notes in a new page when the first chart and CHARTS live ones are there, and how much the page shifts."""
PATIENCE_MS = 120_000
"""Nothing here is a measurement: the machine may be busy."""


@contextmanager
def server(
    home: Path,
    words: Sequence[str] = ("app", "--no-browser", "--host", "127.0.0.1"),
    program: Sequence[str] = (sys.executable, "-m", "normviz"),
    cwd: Path | None = None,
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`normviz app` on a free port; yields its address and its process."""
    port = free_port()
    process = subprocess.Popen(
        [*program, *words, "--port", str(port), "--data", str(home)],
        stdout=subprocess.DEVNULL, start_new_session=True, cwd=cwd,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{address}/_stcore/health"))
        yield address, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


@contextmanager
def files_at(folder: Path) -> Iterator[str]:
    """A plain server of a folder's files, for the app another site; yields its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        Thread(target=files.serve_forever, daemon=True).start()
        yield f"http://localhost:{files.server_address[1]}"
        files.shutdown()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser. Fails, and does not skip, where Chromium is missing.

    Its pages reduce motion unless a test asks for it: a replay takes a core, in every page that opens.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, NO_POPUPS])
        for make in (browser.new_context, browser.new_page):
            setattr(browser, make.__name__, partial(make, reduced_motion="reduce"))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser for all tests of a file."""
    with chromium() as it:
        yield it


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of `address`."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="session")
def address(data: Path) -> Iterator[str]:
    """One server for all tests of this process that do not need an empty store."""
    with server(data) as (url, _):
        yield url


def wait_for(done: Callable[[], object], seconds: float = PATIENCE_MS / 1000) -> None:
    """Poll until `done` says yes. Raises TimeoutError."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise TimeoutError("waited in vain")
        time.sleep(0.05)


def opened(page: Page, address: str, charts: int = 3) -> Page:
    """The page at an address, once that many charts stand (0: nobody has run this link)."""
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.wait_for_selector(".st-key-copy_link button")
    page.wait_for_function(f"document.querySelectorAll('.st-key-live canvas').length >= {charts}")
    return page


def from_menu(page: Page, menu: str, name: str) -> None:
    """Open a page by a menu of the navigation."""
    page.get_by_test_id("stTopNavSection").filter(has_text=menu).click()
    page.get_by_test_id("stTopNavPopover").get_by_text(name).click()


def chip(page: Page, lane: int) -> str:
    """The verdict of a lane as the page shows it now; empty while there is none."""
    return text_now(page, f".st-key-card_{lane} .stMarkdownBadge")


def address_of(page: Page) -> str:
    """The address as the browser has it; `page.url` stays as it is while `wait_for` sleeps."""
    return page.evaluate("location.href")


def text_now(page: Page, selector: str) -> str:
    """The text of the first match in one look, without waiting: a live page may drop it any time."""
    return next(iter(page.locator(selector).all_inner_texts()), "")


BACKGROUND = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"


def changes_theme(page: Page) -> None:
    """Turn the system's theme from light to dark or back, and wait until the page follows."""
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    before = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="light" if is_dark else "dark")
    page.wait_for_function(f"{BACKGROUND} !== '{before}'")


def other_hosts(asked: Iterable[str], address: str) -> set[str]:
    """Which of the URLs that were asked for lie on another host than the server."""
    parts = {url: urlsplit(url) for url in asked}
    ours = urlsplit(address).netloc
    return {u for u, p in parts.items() if p.scheme not in ("data", "blob") and p.netloc != ours}


MENUS = {"exclude": [["[data-testid=stSidebarNavItems]"]]}


def barriers(
    page: Page, only: str | None = None, seconds: float = 60
) -> list[tuple[str, list[str]]]:
    """What axe finds on a page, of any severity, perhaps by one rule, and is still there after some seconds.

    A page that is being drawn has buttons whose labels come a moment later. On a phone Streamlit's navigation
    has the heads of its menus in its list, where axe wants items alone.
    """
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False}
    if only:
        options["runOnly"] = [only]
    until = time.monotonic() + seconds
    while True:
        found = [
            (rule["id"], [node["html"][:200] for node in rule["nodes"]])
            for rule in Axe().run(page, MENUS, options).response["violations"]
        ]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.5)
