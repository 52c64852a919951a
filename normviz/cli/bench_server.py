"""A server to measure: its start on a free port, its memory and CPU time, and the machine's (Linux)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from ..runs.store import Store

START_SECONDS = 60
"""Until a server has to answer."""
READY_SECONDS = 120.0
"""Until the first runs of a server have to train."""
MIB = 2**20


@dataclass(frozen=True)
class Server:
    """A running `normviz app`: its address, its process, and its store."""

    url: str
    process: psutil.Process
    store: Store


@contextmanager
def served(env: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Iterator[Server]:
    """`normviz app` on a free port with an empty store. `env` extends its environment, and `before` are words
    before its command."""
    command = [
        *before,
        sys.executable,
        "-m",
        "normviz",
        "app",
        "--no-browser",
        "--host",
        "127.0.0.1",
    ]
    with (
        tempfile.TemporaryDirectory() as home,
        serving([*command, "--data", home], "--port", env) as (url, process),
    ):
        yield Server(url, process, Store(Path(home)))


@contextmanager
def serving(
    command: list[str], port_flag: str, env: Mapping[str, str] | None = None
) -> Iterator[tuple[str, psutil.Process]]:
    """Start `command`, a server, on a free port; yields its address and its process. Raises TimeoutError."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [*command, port_flag, str(port)],
        stdout=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    ) as server:
        process = psutil.Process(server.pid)
        try:
            wait_for(
                lambda: _answers(f"{url}/_stcore/health"),
                f"the server did not answer at {url} within {START_SECONDS} s: this machine may be too busy",
                START_SECONDS,
            )
            yield url, process
        finally:
            started = below(process)
            server.terminate()
            server.wait()
            psutil.wait_procs(started, timeout=60)  # they may still write into its data folder


def free_port() -> int:
    """A free TCP port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except OSError:
        return False


def wait_for(done: Callable[[], bool], failed: str, seconds: float = READY_SECONDS) -> None:
    """Poll every two milliseconds. Raises TimeoutError, which says what `failed`."""
    until = time.perf_counter() + seconds
    while not done():
        if time.perf_counter() > until:
            raise TimeoutError(failed)
        time.sleep(0.002)


@dataclass(frozen=True)
class Weight:
    """Memory in MiB at one moment.

    server    resident, of the page's process
    training  of the processes that it started: supervisor, workers and the one they were forked from;
              a page that n processes share counts 1/n in each
    torch     whether the page's process has loaded PyTorch
    """

    server: float
    training: float
    torch: bool

    @property
    def all(self) -> float:
        """Server and training together, in MiB."""
        return self.server + self.training


def weigh(server: psutil.Process) -> Weight:
    """Measure the page's process and those that it started."""
    resident = _read(server, lambda process: process.memory_info().rss)
    shares = [
        _read(child, lambda process: process.memory_full_info().pss) for child in below(server)
    ]
    try:  # psutil also adds up what each part weighs, which takes the process' memory lock for long
        torch = "libtorch" in Path(f"/proc/{server.pid}/maps").read_text()
    except OSError:
        torch = False
    return Weight(resident / MIB, sum(shares) / MIB, torch)


def below(process: psutil.Process) -> list[psutil.Process]:
    """All processes that a process started, and those that they started."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def cpu(process: psutil.Process) -> float:
    """CPU seconds of a process so far; 0 if it has ended."""
    return _read(process, lambda process: sum(process.cpu_times()[:2]))


def _read(process: psutil.Process, read: Callable[[psutil.Process], float]) -> float:
    try:
        return read(process)
    except psutil.NoSuchProcess:
        return 0.0


def busy() -> float:
    """CPU seconds that all processes of the machine used so far."""
    times = psutil.cpu_times()
    return sum((times.user, times.nice, times.system, times.irq, times.softirq, times.steal))
