"""Memory and CPU time of processes, and of the rest of the machine (Linux)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


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
        return self.server + self.training


def weigh(server: int) -> Weight:
    """Measure the page's process and those that it started."""
    pids = tuple(below(server))
    return Weight(rss(server), sum(share(pid) for pid in pids), loaded(server, "libtorch"), pids)


def below(pid: int) -> list[int]:
    """All descendants of a process."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
        parents.setdefault(parent, []).append(int(path.parent.name))
    found, open_ = [], [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found += children
        open_ += children
    return found


def cpu(pid: int) -> float:
    """CPU seconds of a process so far; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss(pid: int) -> float:
    """Resident memory in MiB, with shared pages in full."""
    return _memory(pid, "Rss")


def share(pid: int) -> float:
    """Proportional resident memory in MiB: a page shared by n processes counts 1/n, so values add up."""
    return _memory(pid, "Pss")


def loaded(pid: int, library: str) -> bool:
    """Whether a process has mapped a file whose path contains `library`."""
    try:
        return library in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def busy() -> float:
    """CPU seconds of all processes of the machine so far."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / TICKS


def _memory(pid: int, name: str) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.M)
    return int(found[1]) * 1024 / MIB if found else 0.0
