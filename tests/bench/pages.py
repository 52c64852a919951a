"""Every page at five sizes, in both themes: a picture, how much it shifts as it opens, what axe finds."""

from __future__ import annotations

from pathlib import Path

import typer
from browser_kit import SEEN, barriers, chromium
from normviz.app.session.pages import PAGES
from playwright.sync_api import Browser

from normviz.cli.bench_server import served

from .kit import cores, table

SIZES = {
    "phone": (375, 812), "phone on its side": (812, 375), "tablet": (768, 1024), "laptop": (1280, 720),
    "screen": (1920, 1080),
}  # fmt: skip
STILL_MS = 3000
"""How long a page is watched once nothing runs on it: what comes late shifts it too."""


def main(out: Path) -> None:
    """Print the layout shift and the rules of axe that fail, and put the pictures into the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    rows = [("page", *SIZES, "axe finds")]
    with served() as server, chromium() as browser:
        for path in PAGES:
            url = f"{server.url}/{'' if path == 'duel' else path}"
            shifts, found = list[str](), set[str]()
            for name, (width, height) in SIZES.items():
                of_both = []
                for theme in ("light", "dark"):
                    picture = out / f"{path}-{name.replace(' ', '-')}-{theme}.png"
                    shift, rules = _opened(browser, url, (width, height), theme, picture)
                    of_both.append(shift)
                    found |= rules
                shifts.append(f"{max(of_both):.3f}")
            rows.append((path, *shifts, ", ".join(sorted(found)) or "nothing"))
    print(f"cumulative layout shift, the larger of two themes, empty cache, {cores()}")
    print(table(rows))


def _opened(
    browser: Browser, url: str, size: tuple[int, int], theme: str, picture: Path
) -> tuple[float, set[str]]:
    """Open a page in a new context: its layout shift, and the rules of axe that fail."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
    )
    try:
        page = context.new_page()
        page.add_init_script(SEEN.replace("CHARTS", "0"))
        page.goto(url)
        page.locator(".stMain h1, .nv-root").first.wait_for(timeout=120_000)
        page.wait_for_function(
            "document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'",
            timeout=120_000,
        )
        page.wait_for_timeout(STILL_MS)
        page.screenshot(path=picture)
        shift = page.evaluate("window.seen.shift")
        return shift, {rule for rule, _ in barriers(page, seconds=2)}
    finally:
        context.close()


if __name__ == "__main__":
    typer.run(main)
