"""Frame rate of the page while it trains, in a real browser, compared with a plain Streamlit page."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from ..home import shipped
from . import weigh
from .browser import SIZE, served, serving, visited

# Counts animation frames, and updates: changes of the value of `at()`.
WATCH = """
(at) => {
  const look = new Function(`return ${at}`);
  const seen = window.seen = { frames: 0, longest: 0, updates: 0, start: performance.now() };
  let last = seen.start, value = look();
  const frame = (now) => {
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, now - last);
    last = seen.last = now;
    const next = look();
    if (next !== value) { seen.updates += 1; value = next; }
    requestAnimationFrame(frame);
  };
  document.querySelectorAll('canvas, svg.marks').forEach((c) => { c.kept = true; });
  requestAnimationFrame(frame);
}
"""
READ = """
() => ({ ...window.seen, seconds: (window.seen.last - window.seen.start) / 1000,
  kept: [...document.querySelectorAll('canvas, svg.marks')].filter((c) => c.kept).length,
  all: document.querySelectorAll('canvas, svg.marks').length })
"""
PLAYER_STEP = "document.querySelector('.nv-step output')?.textContent"
PLAIN_STEP = "document.querySelector('.st-key-step')?.textContent"


def measure(seconds: float, rounds: int = 2) -> str:
    """Four lanes that train on our page, and the same numbers on a plain page, interleaved.

    Needs playwright and chromium.
    """
    ours, plain = [], []
    for _ in range(rounds):
        ours.append(_ours(seconds))
        plain.append(_plain(seconds))
    head = (
        f"four lanes and four heatmaps, medians of {rounds} rounds of {seconds:.0f} s, {SIZE}, "
        f"{os.cpu_count()} cores for server, training and browser"
    )
    lines = [f"{'':32}{'NormViz':>10}{'plain':>10}"]
    for label, name, unit in (
        ("chart updates a second", "updates", "{:.1f}"),
        ("animation frames a second", "frames", "{:.1f}"),
        ("longest gap between frames, ms", "longest", "{:.0f}"),
        ("kilobytes an update", "kilobytes", "{:.1f}"),
        ("drawings kept, share", "kept", "{:.0%}"),
        ("server, share of one core", "server", "{:.1%}"),
        ("page opened in, s", "opened", "{:.1f}"),
    ):
        values = [unit.format(median(one[name] for one in side)) for side in (ours, plain)]
        lines.append(f"{label:32}{values[0]:>10}{values[1]:>10}")
    note = (
        "plain: st.altair_chart built in a fragment every 0.1 s from a finished run's numbers, "
        "nothing training beside it"
    )
    return "\n".join([head, *lines, note])


def _ours(seconds: float) -> dict[str, float]:
    with served() as (url, server):

        def train(page: Any) -> None:
            page.wait_for_selector(".st-key-copy_link button")
            page.locator(".st-key-train button:visible").first.click()
            page.get_by_text("steps/s").wait_for(timeout=60_000)
            page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 6")
            page.wait_for_timeout(4000)  # until the axes have found their range

        query = "?v=1&lanes=4&scheme=pre,post,peri,deepnorm&steps=4000"
        return _watch(f"{url}/{query}", server, seconds, train, PLAYER_STEP)


def _plain(seconds: float) -> dict[str, float]:
    script = shipped("app") / "bench" / "baseline_page.py"
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true"]
    with serving([*command, "--server.address=127.0.0.1"], "--server.port") as (url, server):

        def ready(page: Any) -> None:
            page.wait_for_function("document.querySelectorAll('.stVegaLiteChart').length >= 6")
            page.wait_for_timeout(2000)

        return _watch(url, server, seconds, ready, PLAIN_STEP)


def _watch(
    address: str, server: int, seconds: float, prepare: Callable[[Any], None], at: str
) -> dict[str, float]:
    received = 0

    def count(frame: str | bytes) -> None:
        nonlocal received
        received += len(frame)

    with visited() as page:
        page.on("websocket", lambda line: line.on("framereceived", count))
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_selector(".stMain [data-testid=stVerticalBlock]")
        opened = time.perf_counter() - began
        prepare(page)
        page.evaluate(WATCH, at)
        cpu, before = weigh.cpu(server), received
        page.wait_for_timeout(1000 * seconds)
        seen: dict[str, Any] = page.evaluate(READ)
        used = weigh.cpu(server) - cpu
    return {
        "updates": seen["updates"] / seen["seconds"],
        "frames": seen["frames"] / seen["seconds"],
        "longest": seen["longest"],
        "kilobytes": (received - before) / 1024 / max(1, seen["updates"]),
        "kept": seen["kept"] / max(1, seen["all"]),
        "server": used / seen["seconds"],
        "opened": opened,
    }
