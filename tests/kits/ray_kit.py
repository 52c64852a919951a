"""A real Ray cluster of this machine: each node in a session of its own, so that it dies whole."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from backend_kit import members, wait_for

from normviz.home import VARIABLE

RAY = (sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1")
SMALL = ("--object-store-memory=80000000", "--disable-usage-stats", "--include-log-monitor=false")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Node:
    """A raylet and its workers; the head also holds what all nodes share."""

    def __init__(self, folder: Path, name: str, *words: str) -> None:
        self.log = folder / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*RAY, *SMALL, *words], stdout=log, stderr=subprocess.STDOUT,
                env=environment(folder, f"home-{name}"), start_new_session=True,
            )  # fmt: skip

    def wait(self) -> None:
        """Until it has joined."""
        wait_for(
            lambda: "Ray runtime started" in self.log.read_text(),
            lambda: f"a node of Ray: {self.log.read_text()}",
        )

    def training(self) -> set[int]:
        """Its workers that have a cell."""
        return {pid for pid in members(self.process.pid) if _title(pid) == "ray::normviz_cells"}

    def stopped(self) -> bool:
        """Whether one of its workers was stopped in a cell; else they all go on."""
        _signal(self.process.pid, signal.SIGSTOP)
        if self.training():
            return True
        _signal(self.process.pid, signal.SIGCONT)
        return False

    def kill(self) -> None:
        """SIGKILL to all of it."""
        kill(self.process.pid)
        self.process.wait()


def kill(session: int) -> None:
    """SIGKILL to every process of a session, until there is none."""
    while members(session):
        _signal(session, signal.SIGKILL)


def _signal(session: int, which: signal.Signals) -> None:
    for pid in sorted(members(session)):
        with suppress(ProcessLookupError):
            os.kill(pid, which)


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode().strip()
    except OSError:
        return ""


def environment(folder: Path, home: str) -> dict[str, str]:
    """Homes and Ray's files in a folder; no Ray that this machine may know of."""
    (folder / home).mkdir(exist_ok=True)
    own = {
        "HOME": str(folder / home),
        VARIABLE: str(folder / home / "normviz"),
        "RAY_TMPDIR": str(folder),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray itself pauses longer between two looks at a node; one that is gone refuses each at once.
        "RAY_health_check_initial_delay_ms": "1000",
        "RAY_health_check_period_ms": "500",
    }
    return {**{k: v for k, v in os.environ.items() if not k.startswith("RAY_")}, **own}


class Nodes:
    """A head and another node of one core each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.rpartition(":")[2]
        own = ("--head", f"--port={port}", "--node-ip-address=127.0.0.1", f"--temp-dir={folder}")
        self.head = Node(folder, "head", *own, "--include-dashboard=false", "--no-monitor")
        self.other: Node | None = None

    def join(self) -> Node:
        """Another node."""
        self.other = Node(
            self.folder, "other", f"--address={self.address}", "--node-ip-address=127.0.0.1"
        )
        return self.other

    def kill(self) -> None:
        """All of it."""
        for node in (self.other, self.head):
            if node is not None:
                node.kill()


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for Ray's sockets."""
    folder = Path(tempfile.mkdtemp(prefix="nv"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def head() -> Iterator[Nodes]:
    """A cluster of one node; `join` adds another. Nothing of it is left, whatever happens."""
    with short_folder() as folder:
        nodes = Nodes(folder)
        try:
            nodes.head.wait()
            yield nodes
        finally:
            nodes.kill()


class Driver:
    """`normviz sweep` in a process and a session of its own, of which nothing is left behind."""

    def __init__(self, folder: Path, data: Path, *words: str, before: str = "") -> None:
        code = f"{before}\nfrom normviz.cli import main\nmain()"
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "sweep", *words, "--data", str(data)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(folder, "home-driver"), start_new_session=True,
        )  # fmt: skip
        signal.signal(signal.SIGINT, handler)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        kill(self.process.pid)
        self.process.communicate()

    def end(self, seconds: float = 600.0) -> tuple[int, str, str]:
        """Exit code, output and errors."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err
