"""Memory and CPU time of processes, and of the rest of the machine (Linux)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 2**20


@dataclass(frozen=True)
class Weight:
    """Memory in MiB at one moment.

    server    resident, of the page's process
    training  of the processes that it started: supervisor, workers and the one they were forked from;
              shared memory counts once
    torch     whether the page's process has loaded PyTorch
    """

    server: float
    training: float
    torch: bool
    pids: tuple[int, ...]

    @property
    def all(self) -> float:
        """Server and training together, in MiB."""
        return self.server + self.training


def weigh(server: int) -> Weight:
    """Measure the page's process and those that it started."""
    pids = tuple(below(server))
    return Weight(rss(server), sum(share(pid) for pid in pids), loaded(server, "libtorch"), pids)


def below(pid: int) -> list[int]:
    """All processes that a process started, and those that they started."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu(pid: int) -> float:
    """CPU seconds of a process so far; 0 if it has ended."""
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return times.user + times.system


def rss(pid: int) -> float:
    """Resident memory in MiB: what a process alone would need."""
    try:
        return psutil.Process(pid).memory_info().rss / MIB
    except psutil.NoSuchProcess:
        return 0.0


def share(pid: int) -> float:
    """Resident memory in MiB where a page that n processes share counts 1/n: these add up."""
    try:
        return psutil.Process(pid).memory_full_info().pss / MIB
    except psutil.NoSuchProcess:
        return 0.0


def loaded(pid: int, library: str) -> bool:
    """Whether a process has mapped a file whose path contains `library`."""
    try:  # psutil also adds up what each part weighs, which takes the process' memory lock for long
        return library in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def busy() -> float:
    """CPU seconds that all processes of the machine used so far."""
    times = psutil.cpu_times()
    return sum((times.user, times.nice, times.system, times.irq, times.softirq, times.steal))
