"""Ten seconds of the page while two lanes train, as an animated GIF, and stills of the page."""

from __future__ import annotations

import io
import time
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer
from browser_kit import chromium
from PIL import Image

from normviz.cli.bench_server import served

SIZE: Any = {"width": 1280, "height": 720}
FOUR = "?v=1&lanes=4&scheme=pre,post,peri,sandwich"
STILLS: dict[str, tuple[str, dict[str, Any]]] = {
    "page": ("", {"viewport": SIZE}),
    "dark": ("", {"viewport": SIZE, "color_scheme": "dark"}),
    "phone": ("", {"viewport": {"width": 375, "height": 812}}),
    "tour": ("?story=4", {"viewport": SIZE}),
    "lanes": (FOUR, {"viewport": SIZE}),
}
"""Pictures of the page: query of its address, and what the browser is."""
PICTURES_A_SECOND = 6
COLORS = 160


def main(
    out: Annotated[Path, typer.Option(exists=True, file_okay=False)], seconds: float = 10.0
) -> None:
    """Write `duel.gif` and the stills (`page.png`, `tour.png`, ...) into a folder."""
    shots: list[tuple[float, bytes]] = []
    with served() as server, chromium() as browser:
        for name, (query, look) in STILLS.items():
            context = browser.new_context(**look)
            page = context.new_page()
            page.goto(f"{server.url}/{query}")
            page.wait_for_selector(".st-key-live canvas")
            page.wait_for_timeout(4000)
            # At step 48 the hero's gradient has its slope and the losses have separated.
            if not query:
                page.locator(".nv-step input").fill("48")
                page.locator(".nv-step input").blur()
            page.wait_for_timeout(1000)
            page.screenshot(path=out / f"{name}.png")
            context.close()
        page = browser.new_page(viewport=SIZE, reduced_motion="no-preference")
        page.goto(f"{server.url}/?v=1&lanes=2&scheme=pre,post&steps=600")
        page.wait_for_selector(".st-key-copy_link button")
        page.locator(".st-key-train button:visible").first.click()
        page.get_by_text("steps/s").wait_for(timeout=60_000)
        began = time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            shots.append((now, page.screenshot()))
            page.wait_for_timeout(max(0, 1000 * (len(shots) / PICTURES_A_SECOND - now)))
    pictures = [Image.open(io.BytesIO(shot)).convert("RGB") for _, shot in shots]
    size = (SIZE["width"] * 5 // 8, SIZE["height"] * 5 // 8)
    # One palette for all frames, or colours would flicker.
    palette = pictures[-1].resize(size).quantize(COLORS, method=Image.Quantize.MEDIANCUT)
    small = [
        one.resize(size, Image.Resampling.LANCZOS).quantize(
            palette=palette, dither=Image.Dither.NONE
        )
        for one in pictures
    ]
    times = [at for at, _ in shots] + [seconds]
    lasts = [round(1000 * (b - a)) for a, b in pairwise(times)]
    target = out / "duel.gif"
    small[0].save(
        target, save_all=True, append_images=small[1:], duration=lasts, loop=0, optimize=True
    )
    print(f"{target}: {len(small)} pictures, {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
