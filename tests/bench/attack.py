"""What visitors of a shared server feel while one network address asks too much of it.

The server runs on this machine's loopback address behind the kept proxy, with visitors that click and watch
a duel train, and one attack after another (`attackers.py`). Every visitor and the attacker state a network
address of their own, as another proxy would. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from normviz.cli.bench_load import NICE, Observed
from normviz.cli.bench_server import free_port

from .attackers import ATTACKS
from .churn import shared
from .kit import cores, table

NONE = "none"
"""The same without an attack, to compare with."""
PAUSE_SECONDS = 3.0
"""Between two clicks of a visitor."""
CHURN = 0.5
"""Visitors a second who leave and are replaced: their pages tell how soon a page is usable."""
SAMPLE_SECONDS = 1.0
MEMORY_MIB, PAGE_SECONDS, UPDATES, BACK_SHARE = 700, 2.0, 2.0, 1.1
"""The goals: resident memory of all of NormViz, seconds until a page is usable (95 of 100), updates a
second of the visitor who gets fewest, and memory after the attack as a share of what it was before it, or
of what the server has at that time without an attack: visitors alone fill its caches."""
HEAD = (
    "attack",
    "page, s",
    "click, s",
    "updates/s",
    "cut off",
    "server",
    "all",
    "after",
    "outcome",
)


@dataclass(frozen=True)
class Attacked:
    """One attack. Memory is resident, in MiB, of the server and all of NormViz."""

    name: str
    seen: Observed
    server_before: float
    server_peak: float
    peak: float
    server_after: float

    def wrong(self, calm: float) -> list[str]:
        """The goals that were missed; `calm` is what the server has after the same time without an attack."""
        seen, found = self.seen, list[str]()
        if seen.failures:
            found.append(f"{len(seen.failures)} cut off ({max(set(seen.failures), key=len)[:90]})")
        if _most(seen.interactive) > PAGE_SECONDS:
            found.append("pages late")
        if _most(seen.clicks) > PAGE_SECONDS:
            found.append("clicks late")
        if not seen.rates or min(seen.rates) < UPDATES:
            found.append("charts slow")
        if self.peak > MEMORY_MIB:
            found.append("memory high")
        if self.server_after > BACK_SHARE * max(self.server_before, calm):
            found.append("memory not back")
        return found

    def row(self, wrong: list[str]) -> tuple[str, ...]:
        """A row of the table."""
        rates = self.seen.rates
        return (
            self.name, _pair(self.seen.interactive), _pair(self.seen.clicks),
            f"{median(rates):.1f} ({min(rates):.1f})" if rates else "-", str(len(self.seen.failures)),
            f"{self.server_before:.0f} to {self.server_peak:.0f}", f"{self.peak:.0f}",
            f"{self.server_after:.0f}", "; ".join(wrong) or "held",
        )  # fmt: skip


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"{NONE}, {', '.join(ATTACKS)}")] = None,
    visitors: int = 20,
    seconds: float = 60.0,
    after: float = 60.0,
) -> None:
    """Run each attack for `seconds`, and weigh the server `after` seconds later; all if none is named."""
    known = (NONE, *ATTACKS)
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"{name[:40]!r} is no attack, allowed are {', '.join(known)}")
    found = [
        measure(name, visitors, seconds, after) for name in sorted(names or known, key=known.index)
    ]
    calm = found[0].server_after if found[0].name == NONE else 0.0
    wrong = [one.wrong(calm) for one in found]
    print(
        f"{visitors} visitors of a shared server (hosted mode) who watch a duel and click every "
        f"{PAUSE_SECONDS:g} s, {CHURN:g} a second replaced; each attack of one network address for "
        f"{seconds:g} s. page: of a new visitor, until usable; click: until rendered; median (95 of 100). "
        f"updates of the charts: median (worst visitor). Memory in MiB: server before and at its "
        f"peak, all of NormViz at its peak, server {after:g} s after. {cores()}"
    )
    print(table([HEAD, *(one.row(missed) for one, missed in zip(found, wrong, strict=True))]))
    raise typer.Exit(int(any(wrong)))


def measure(name: str, visitors: int, seconds: float, after: float) -> Attacked:
    """Run one attack. Raises TimeoutError if the visitors get no page even before it."""
    with shared(visitors, proxied, per_second=8.0, pause=PAUSE_SECONDS) as it:
        it.crowd.say(churn=CHURN)
        before = it.watch(max(2.0, seconds / 6), SAMPLE_SECONDS)[-1].server
        it.crowd.mark()
        with attacking(it.url, name):
            weights = it.watch(seconds, SAMPLE_SECONDS)
            seen = it.crowd.mark()
        later = it.watch(after, SAMPLE_SECONDS)[-1].server
    peak = max(weights, key=lambda one: one.all).all
    return Attacked(name, seen, before, max(one.server for one in weights), peak, later)


@contextmanager
def proxied(url: str) -> Iterator[str]:
    """The kept proxy (Debian's nginx) before a server. It believes the addresses that visitors state."""
    kept = (Path(__file__).parents[2] / "assets" / "deploy" / "nginx.conf").read_text()
    port, behind = free_port(), url.rpartition(":")[2]
    with tempfile.TemporaryDirectory() as folder:
        text = kept.replace("listen 8501", f"listen 127.0.0.1:{port}").replace("8502", behind)
        user = "user root;\n" if os.geteuid() == 0 else ""
        (Path(folder) / "nginx.conf").write_text(user + text)
        (Path(folder) / "proxies.conf").write_text("set_real_ip_from 127.0.0.1;")
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin") or "nginx"
        command = [nginx, "-p", folder, "-e", "stderr", "-c", "nginx.conf"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def attacking(url: str, name: str) -> Iterator[None]:
    """An attack in a process of its own, as nice as training."""
    if name == NONE:
        yield
        return
    command = [sys.executable, "-m", "tests.bench.attackers", url, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _most(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed; infinite without values."""
    return sorted(values)[ceil(0.95 * len(values)) - 1] if values else float("inf")


def _pair(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({_most(values):.2f})" if values else "-"


if __name__ == "__main__":
    typer.run(main)
