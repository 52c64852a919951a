"""When a visitor sees the first chart of the page, and how much the page shifts, in a real browser.

Three pages in the same rounds: ours, ours without the still that the server puts into the HTML, and a
plain Streamlit page with as many charts.
"""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from statistics import median
from typing import TYPE_CHECKING

from ..home import shipped
from .browser import served, serving, visited

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WATCH = """
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
REMOVE = """
new MutationObserver((_, looking) => {
  const still = document.getElementById("nv-still");
  if (still) { still.remove(); looking.disconnect(); }
}).observe(document, { childList: true, subtree: true });
"""
"""Takes away the still before it is painted, in a browser."""
WIDTH, HEIGHT = 1280, 720
AFTER_MS = 2000
"""How long the page is watched after its charts are live: what comes late shifts it too."""
ROWS = (
    ("first chart after, s", "first", "{:.2f}"),
    ("live charts after, s", "live", "{:.2f}"),
    ("cumulative layout shift", "shift", "{:.3f}"),
    ("kilobytes of HTML", "kilobytes", "{:.0f}"),
)


def measure(rounds: int = 5) -> str:
    """Medians of the three pages, each opened in a new browser context with an empty cache.

    Both servers are warm: the page has been opened before. Needs playwright and chromium.
    """
    script = shipped("app") / "bench" / "baseline_page.py"
    streamlit = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true"]
    sides: dict[str, list[dict[str, float]]] = {"NormViz": [], "no still": [], "plain": []}
    with (
        served() as (ours, _),
        serving([*streamlit, "--server.address=127.0.0.1"], "--server.port") as (plain, _),
        visited() as page,
    ):
        browser = page.context.browser
        assert browser is not None
        _wait_for_still(ours)
        for url, n in ((ours, 4), (plain, 6)):  # what each server loads at its first visitor
            _opened(browser, url, n)
        for _ in range(rounds):
            sides["NormViz"].append(_opened(browser, ours, 4))
            sides["no still"].append(_opened(browser, ours, 4, without=True))
            sides["plain"].append(_opened(browser, plain, 6))
    head = (
        f"medians of {rounds} rounds, headless Chromium at {WIDTH} x {HEIGHT} with an empty cache, "
        f"{os.cpu_count()} cores for servers and "
        f"browser, load {os.getloadavg()[0]:.1f}"
    )
    lines = [f"{'':28}" + "".join(f"{name:>10}" for name in sides)]
    for label, name, unit in ROWS:
        values = [unit.format(median(one[name] for one in side)) for side in sides.values()]
        lines.append(f"{label:28}" + "".join(f"{value:>10}" for value in values))
    note = "plain: six Altair charts of the same finished runs in a Streamlit page"
    return "\n".join([head, *lines, note])


def _wait_for_still(url: str) -> None:
    """Until the server has drawn the still of its first page."""
    until = time.monotonic() + 120
    while b"nv-still" not in urllib.request.urlopen(url, timeout=30).read():
        if time.monotonic() > until:
            raise TimeoutError("the page has no still after 120 s")
        time.sleep(0.5)


def _opened(browser: Browser, url: str, n: int, without: bool = False) -> dict[str, float]:
    """Open a page whose `n` charts come to live, `without` the still in its HTML."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT})
    try:
        page, sizes = context.new_page(), list[int]()

        if without:
            page.add_init_script(REMOVE)
        page.on("response", lambda it: sizes.append(int(it.headers.get("content-length", 0))))
        page.add_init_script(WATCH.replace("CHARTS", str(n)))
        page.goto(url)
        page.wait_for_function("window.seen.live !== null", timeout=120_000)
        page.wait_for_timeout(AFTER_MS)
        seen = page.evaluate("window.seen")
        return {
            "first": seen["first"] / 1000, "live": seen["live"] / 1000, "shift": seen["shift"],
            "kilobytes": sizes[0] / 1024,
        }  # fmt: skip
    finally:
        context.close()
