"""Time from releasing the Anatomy page's depth slider to the new curves, in a real browser."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from .browser import SIZE, served, visited

if TYPE_CHECKING:
    from playwright.sync_api import Page

DEPTHS = (6, 24, 48, 96)
SCHEMES = (("pre",), ("pre", "post"))
BEGIN = 12
RANGE = 95
"""Positions of the slider, from 1 to 96 blocks."""
STILL_MS = 500
"""The charts are done once none has changed for this long; the time counts to the last change."""

# After the release of the slider, every frame reads the depth in the text and the charts' pixels.
# The pixels decide, because a canvas may still show the old curves.
WATCH = """
(depth) => {
  const seen = window.seen = { depth, at: null, done: false };
  const looks = () => [...document.querySelectorAll('.st-key-measured canvas')].map((canvas) => {
    const { width, height } = canvas;
    const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    let sum = width + 31 * height;
    for (let i = 0; i < pixels.length; i += 4) sum = (33 * sum + pixels[i] + pixels[i + 2]) | 0;
    return sum;
  });
  const before = looks();
  addEventListener('pointerup', () => {
    const start = performance.now();
    let last = before, changed = start;
    const frame = () => {
      const now = performance.now();
      const words = document.querySelector('.st-key-measured').innerText;
      const here = words.includes(`${depth} blocks of width`) && words.includes('first batch');
      const next = looks();
      if (String(next) !== String(last)) { last = next; changed = now; }
      const fresh = next.length === 3 && next.every((sum, i) => sum !== before[i]);
      if (here && fresh && now - changed > STILL) { seen.at = changed - start; seen.done = true; }
      else setTimeout(() => requestAnimationFrame(frame), 15);
    };
    frame();
  }, { once: true, capture: true });
}
""".replace("STILL", str(STILL_MS))


def measure(rounds: int) -> str:
    """Move the slider to each depth `rounds` times, interleaved; a table of median and worst."""
    busy = os.getloadavg()[0]
    seconds = {(schemes, depth): [] for schemes in SCHEMES for depth in DEPTHS}
    with served() as (address, _), visited() as page:
        page.set_default_timeout(60_000)
        for turn in range(rounds):
            for schemes in SCHEMES:
                # Nothing is cached for this seed.
                settings = f"scheme={','.join(schemes)}&init_seed={turn}&depth={BEGIN}"
                page.goto(f"{address}/anatomy?v=1&lanes={len(schemes)}&{settings}")
                page.get_by_text(f"{BEGIN} blocks of width 32, first batch").wait_for()
                for i in range(len(DEPTHS)):
                    depth = DEPTHS[(turn + i) % len(DEPTHS)]
                    page.wait_for_timeout(700)  # a visitor's pace
                    seconds[schemes, depth].append(_move(page, depth))
    lines = [
        f"slider release to new curves, {rounds} interleaved rounds, {SIZE}, "
        f"{os.cpu_count()} cores for server, measuring and browser; load before {busy:.1f}"
    ]
    for (schemes, depth), found in seconds.items():
        lines.append(
            f"  {' and '.join(schemes):12}  {depth:3} blocks  "
            f"median {np.median(found):4.0f} ms, worst {max(found):4.0f} ms"
        )
    return "\n".join(lines)


def _move(page: Page, depth: int) -> float:
    """Drag the slider to a depth and release it; milliseconds until its curves are drawn."""
    slider = page.locator(".st-key-anatomy_depth input[type=range]")
    thumb = slider.locator("xpath=../..").bounding_box()
    track = slider.locator("xpath=../../..").bounding_box()
    assert thumb
    assert track
    height = thumb["y"] + thumb["height"] / 2
    page.mouse.move(thumb["x"] + thumb["width"] / 2, height)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * (depth - 1) / RANGE, height, steps=4)
    reached = slider.input_value()
    assert reached == str(depth), f"the slider is at {reached}"
    page.wait_for_timeout(200)
    page.evaluate(WATCH, depth)
    page.mouse.up()
    page.wait_for_function("window.seen.done")
    return page.evaluate("window.seen.at")
