"""Frame rate of the page while it trains, in a real browser, compared with a plain Streamlit page."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psutil
import typer

from normviz.cli.bench_server import cpu, served

from .kit import SIZE, cores, interleaved, medians, plain, visited

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


UNITS = {
    "chart updates a second": "{:.1f}", "animation frames a second": "{:.1f}",
    "longest gap between frames, ms": "{:.0f}", "kilobytes an update": "{:.1f}",
    "drawings kept, share": "{:.0%}", "server, share of one core": "{:.1%}",
    "page opened in, s": "{:.1f}",
}  # fmt: skip


def main(seconds: float = 10.0, rounds: int = 2) -> None:
    """Four lanes that train on our page, and the same numbers on a plain page, for `seconds` each."""
    found = interleaved(
        {"NormViz": lambda: _ours(seconds), "plain": lambda: _plain(seconds)}, rounds
    )
    print(
        f"four lanes and four heatmaps, medians of {rounds} rounds of {seconds:.0f} s, {SIZE}, {cores()}"
    )
    print(medians(UNITS, found))
    print(
        "plain: st.altair_chart built in a fragment every 0.1 s from a finished run's numbers, nothing "
        "training beside it"
    )


def _ours(seconds: float) -> dict[str, float]:
    def train(page: Any) -> None:
        page.wait_for_selector(".st-key-copy_link button")
        page.locator(".st-key-train button:visible").first.click()
        page.get_by_text("steps/s").wait_for(timeout=60_000)
        page.wait_for_function("document.querySelectorAll('.nv canvas').length >= 6")
        page.wait_for_timeout(4000)  # until the axes have found their range

    with served() as server:
        url = f"{server.url}/?v=1&lanes=4&scheme=pre,post,peri,deepnorm&steps=4000"
        return _watch(url, server.process, seconds, train, PLAYER_STEP)


def _plain(seconds: float) -> dict[str, float]:
    def ready(page: Any) -> None:
        page.wait_for_function("document.querySelectorAll('.stVegaLiteChart').length >= 6")
        page.wait_for_timeout(2000)

    with plain() as (url, process):
        return _watch(url, process, seconds, ready, PLAIN_STEP)


def _watch(
    address: str, server: psutil.Process, seconds: float, prepare: Callable[[Any], None], at: str
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
        used, before = cpu(server), received
        page.wait_for_timeout(1000 * seconds)
        seen: dict[str, Any] = page.evaluate(READ)
        used = cpu(server) - used
    values = (
        seen["updates"] / seen["seconds"], seen["frames"] / seen["seconds"], seen["longest"],
        (received - before) / 1024 / max(1, seen["updates"]), seen["kept"] / max(1, seen["all"]),
        used / seen["seconds"], opened,
    )  # fmt: skip
    return dict(zip(UNITS, values, strict=True))


if __name__ == "__main__":
    typer.run(main)
