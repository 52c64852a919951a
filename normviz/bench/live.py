"""How the page moves while it trains, seen from a real browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Counts animation frames, and updates as changes of the step slider, which moves with every one.
WATCH = """
() => {
  const seen = window.seen = { frames: 0, longest: 0, updates: 0, start: performance.now() };
  let last = seen.start, value = null;
  const frame = (now) => {
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, now - last);
    last = now;
    const slider = document.querySelector('.st-key-cursor [role=slider], .st-key-cursor input');
    const next = slider && (slider.getAttribute('aria-valuenow') || slider.value);
    if (next !== value) { seen.updates += 1; value = next; }
    seen.last = now;
    requestAnimationFrame(frame);
  };
  document.querySelectorAll('.st-key-live canvas').forEach((c) => { c.kept = true; });
  requestAnimationFrame(frame);
}
"""
READ = """
() => ({ ...window.seen, seconds: (window.seen.last - window.seen.start) / 1000,
  kept: [...document.querySelectorAll('.st-key-live canvas')].filter((c) => c.kept).length,
  all: document.querySelectorAll('.st-key-live canvas').length })
"""


def measure(seconds: float) -> str:
    """Train two hero lanes on the page and watch for some seconds. Needs playwright and chromium."""
    with tempfile.TemporaryDirectory() as home:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
        with subprocess.Popen(
            [*command, "--port", str(port), "--data", home], stdout=subprocess.DEVNULL
        ) as server:
            try:
                return _watch(f"http://127.0.0.1:{port}", server.pid, seconds)
            finally:
                server.terminate()


def _watch(address: str, server: int, seconds: float) -> str:
    from playwright.sync_api import sync_playwright

    _await(f"{address}/_stcore/health")
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        page.goto(f"{address}/?v=1&lanes=2&scheme=pre,post&steps=2000")
        page.wait_for_selector(".st-key-copy_link button")
        opened = time.perf_counter() - began
        page.locator(".st-key-train button:visible").first.click()
        page.get_by_text("steps/s").wait_for(timeout=60_000)
        page.wait_for_timeout(4000)  # the axes have found their range
        page.evaluate(WATCH)
        cpu = _cpu_seconds(server)
        page.wait_for_timeout(1000 * seconds)
        seen: dict[str, Any] = page.evaluate(READ)
        share = (_cpu_seconds(server) - cpu) / seen["seconds"]
        browser.close()
    return (
        f"two lanes training for {seen['seconds']:.0f} s, headless Chromium at 1280 x 900, "
        f"{os.cpu_count()} cores for server, training and browser\n"
        f"  chart updates      {seen['updates'] / seen['seconds']:5.1f} a second\n"
        f"  animation frames   {seen['frames'] / seen['seconds']:5.1f} a second, longest gap "
        f"{seen['longest']:.0f} ms\n"
        f"  canvases kept      {seen['kept']} of {seen['all']}\n"
        f"  server             {share:5.0%} of one core\n"
        f"  page opened in     {opened:5.1f} s"
    )


def _await(url: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


def _cpu_seconds(pid: int) -> float:
    """CPU seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
