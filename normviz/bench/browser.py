"""Servers to measure, and a headless Chromium that opens them. Needs playwright and chromium."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
SIZE = "headless Chromium at 1280 x 900"
START_SECONDS = 60
"""Until a server has to answer."""


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """`normviz app` on a free port with an empty store; yields its address and process ID."""
    command = [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1"]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port") as it,
    ):
        yield it


@contextmanager
def serving(
    command: list[str], port_flag: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """Start `command`, a server, on a free port; yields its address and process ID. `env` extends its
    environment."""
    port = free_port()
    with subprocess.Popen(
        [*command, port_flag, str(port)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    ) as server:
        try:
            _await(f"http://127.0.0.1:{port}/_stcore/health")
            yield f"http://127.0.0.1:{port}", server.pid
        finally:
            with all_ended(server.pid):
                server.terminate()
                server.wait()


@contextmanager
def all_ended(server: int) -> Iterator[None]:
    """End a server in the body; afterwards wait for the processes that it started, which may still write
    into its data folder."""
    try:
        started = psutil.Process(server).children(recursive=True)
    except psutil.NoSuchProcess:
        started = []
    yield
    psutil.wait_procs(started, timeout=60)


@contextmanager
def visited() -> Iterator[Page]:
    """A blank page in a new browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield browser.new_page(viewport={"width": 1280, "height": 900})
        finally:
            browser.close()


def _await(url: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(
        f"the server did not answer at {url} within {START_SECONDS} s: this machine may be too busy"
    )
