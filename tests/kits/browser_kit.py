"""A real server and a real browser for tests: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import re
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
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from normviz.cli.bench_server import free_port
from normviz.lessons.tour import STEPS
from normviz.runs import Run
from normviz.runs.store import Store

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
        time.sleep(0.1)


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


LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 375, "height": 812}
IDLE = """document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
  && document.querySelector(".page-status")"""
HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
  .filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"""
SHIFTS = """window.shift = 0; window.moves = []; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) {
    window.shift += entry.value;
    for (const { node, previousRect: from, currentRect: to } of entry.sources)
      window.moves.push(`${entry.value.toFixed(3)}: ` +
        `${(node?.closest?.('[class*="st-key-"]') ?? node)?.className}, ` +
        `top ${from.y} to ${to.y}, height ${from.height} to ${to.height}`);
  }
}).observe({ type: "layout-shift", buffered: true });"""
MOST_SHIFT = 0.1
"""Layout shift up to which a page opens well, as Web Vitals have it."""


def moved(page: Page) -> list[str]:
    """What moved since the page was opened, where it is more than MOST_SHIFT in all."""
    return page.evaluate(f"window.shift > {MOST_SHIFT} ? window.moves : []")


@contextmanager
def visit(
    browser: Browser, address: str = "", size: Any = LAPTOP, is_cut: bool = False, **look: Any
) -> Iterator[Page]:
    """A tab of a browser that knows nothing of earlier ones. At the end it must have printed no error (but
    that of a request, where the test cuts the network), shown no traceback, run no script of a stranger, and,
    with `address`, asked no other host."""
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
                and not (is_cut and "net::ERR_" in it.text)
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


def at(place: Locator, x: float, y: float) -> Any:
    """A point of a chart, as shares of its width and height."""
    found = place.bounding_box()
    assert found
    return {"x": found["width"] * x, "y": found["height"] * y}


def runs(store: Store, seed: int) -> list[Run]:
    rows = store.db.connection.execute("SELECT id FROM runs ORDER BY id").fetchall()
    return [run for (it,) in rows if (run := store.run(it)) and run.config.init_seed == seed]


def untrained_without_a_jump(page: Page) -> None:
    """A link that nobody has run: no picture covers the page until it is whole."""
    idle(page)
    page.wait_for_function("!document.querySelector('.stMain [data-testid=stSkeleton]')")
    page.locator(".st-key-live").get_by_text("Press Train").wait_for()
    assert moved(page) == []


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


def has_no_barrier(page: Page, both: bool = True) -> None:
    """axe finds nothing on the page in its theme, nor, for `both`, any colour that is hard to read in
    the other one; headings skip no level."""
    page.mouse.move(0, 0)  # a tooltip lies outside of all landmarks
    idle(page)
    levels = page.evaluate(HEADINGS)
    assert levels.count(1) == ("embed" not in page.url), (page.url, levels)
    assert all(b - a <= 1 for a, b in pairwise(levels)), (page.url, levels)
    assert barriers(page) == [], page.url
    if not both:
        return
    changes_theme(page)
    assert barriers(page, only="color-contrast") == [], page.url
