"""What processes weigh and use: memory, CPU seconds, and what else the machine did (Linux)."""

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

    server    of the page's process, resident
    training  of all that it started: supervisor, workers, what they were forked from. What several
              share counts once
    torch     the page's process has loaded PyTorch
    """

    server: float
    training: float
    torch: bool
    pids: tuple[int, ...]

    @property
    def all(self) -> float:
        return self.server + self.training


def weigh(server: int) -> Weight:
    """The page's process and those that it started, now."""
    pids = tuple(below(server))
    return Weight(rss(server), sum(share(pid) for pid in pids), loaded(server, "libtorch"), pids)


def below(pid: int) -> list[int]:
    """All processes that a process started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            continue
        parents.setdefault(parent, []).append(int(path.parent.name))
    found, open_ = [], [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found += children
        open_ += children
    return found


def cpu(pid: int) -> float:
    """CPU seconds of a process so far; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss(pid: int) -> float:
    """Resident memory in MiB: what a process alone would need."""
    return _memory(pid, "Rss")


def share(pid: int) -> float:
    """Resident memory in MiB where a page that n processes share counts 1/n: these add up."""
    return _memory(pid, "Pss")


def loaded(pid: int, library: str) -> bool:
    """Whether a process has mapped a file whose path contains `library`."""
    try:
        return library in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def busy() -> float:
    """CPU seconds that all processes of the machine used so far."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / TICKS


def _memory(pid: int, name: str) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.M)
    return int(found[1]) * 1024 / MIB if found else 0.0
