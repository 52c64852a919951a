"""When a visitor sees the first chart of the page, and how much the page shifts, in a real browser.

Four pages in the same rounds: ours, ours without the still that the server puts into the HTML, a plain
Streamlit page with as many charts, and Maps.
"""

from __future__ import annotations

import urllib.request

import typer
from browser_kit import SEEN, chromium
from playwright.sync_api import Browser

from normviz.cli.bench_server import served, wait_for

from .kit import cores, interleaved, medians, plain

REMOVE = """
new MutationObserver((_, looking) => {
  const still = document.getElementById("nv-still");
  if (still) { still.remove(); looking.disconnect(); }
}).observe(document, { childList: true, subtree: true });
"""
"""Takes away the still before it is painted, in a browser."""
AFTER_MS = 2000
"""How long the page is watched after its charts are live: what comes late shifts it too."""
UNITS = {
    "first chart after, s": "{:.2f}", "live charts after, s": "{:.2f}", "cumulative layout shift": "{:.3f}",
    "kilobytes of HTML": "{:.0f}",
}  # fmt: skip


def main(rounds: int = 5) -> None:
    """Print medians of the four pages, each opened in a new browser context with an empty cache.

    Both servers are warm: the page has been opened before. Of Maps the first opening is printed too.
    """
    with served() as server, plain() as (other, _), chromium() as browser:
        wait_for(
            lambda: b"nv-still" in urllib.request.urlopen(server.url, timeout=30).read(),
            "the page has no still",
        )
        pages = {
            "NormViz": lambda: _opened(browser, server.url, 4),
            "no still": lambda: _opened(browser, server.url, 4, without=True),
            "plain": lambda: _opened(browser, other, 6),
            "Maps": lambda: _opened(browser, f"{server.url}/maps", 1),
        }
        first = interleaved(pages, 1)  # what each server loads at its first visitor
        found = interleaved(pages, rounds)
    print(
        f"medians of {rounds} rounds, headless Chromium at 1280 x 720 with an empty cache, {cores()}"
    )
    print(medians(UNITS, found))
    seconds = first["Maps"][0]["first chart after, s"]
    print(f"Maps at its first opening after the server's start: first chart after {seconds:.2f} s")
    print("plain: six Altair charts of the same finished runs in a Streamlit page")


def _opened(browser: Browser, url: str, n: int, without: bool = False) -> dict[str, float]:
    """Open a page whose `n` charts come to live, `without` the still in its HTML."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, reduced_motion="no-preference"
    )
    try:
        page, sizes = context.new_page(), list[int]()
        if without:
            page.add_init_script(REMOVE)
        page.on("response", lambda it: sizes.append(int(it.headers.get("content-length", 0))))
        page.add_init_script(SEEN.replace("CHARTS", str(n)))
        page.goto(url)
        page.wait_for_function("window.seen.live !== null", timeout=120_000)
        page.wait_for_timeout(AFTER_MS)
        seen = page.evaluate("window.seen")
    finally:
        context.close()
    values = (seen["first"] / 1000, seen["live"] / 1000, seen["shift"], sizes[0] / 1024)
    return dict(zip(UNITS, values, strict=True))


if __name__ == "__main__":
    typer.run(main)
