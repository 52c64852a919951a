"""What visitors of a shared server feel while one network address asks too much of it.

    python -m tests.bench.attack pings requests
    python -m tests.bench.attack --record --cgroup /sys/fs/cgroup/memory/normviz    # all, in its memory limit
    python -m tests.bench.documents                     # writes the table of them

The server runs on this machine's loopback address behind the kept proxy, with visitors that click and watch
a duel train, first without and then with an attack (`attackers.py`). Every visitor and the attacker state a
network address of their own, as another proxy would. Exit code 1 where a goal is missed.

A server in a memory cgroup has its limit, with its proxy and all its workers, as in a container. As root, for
1 GiB (of version 2 the file is `memory.max`, in a folder of /sys/fs/cgroup):

    mkdir /sys/fs/cgroup/memory/normviz
    echo 1G > /sys/fs/cgroup/memory/normviz/memory.limit_in_bytes
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil, inf
from pathlib import Path
from statistics import median
from typing import Annotated, Any

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
FILE = Path(__file__).with_name("attacks.json")
JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
"""A shell's words before the command that they start in a cgroup."""


@dataclass(frozen=True)
class Felt:
    """What visitors felt for a while: seconds until a page was usable and until a click was rendered, each
    the median and what 95 of 100 did not exceed; updates of the charts a second, the median and the worst."""

    page: tuple[float, float]
    click: tuple[float, float]
    updates: tuple[float, float]

    @classmethod
    def of(cls, seen: Observed) -> Felt:
        """Of what the visitors saw."""
        rates = seen.rates or [0.0]
        return cls(_pair(seen.interactive), _pair(seen.clicks), (median(rates), min(rates)))


@dataclass(frozen=True)
class Attacked:
    """One attack. Memory is resident, in MiB, of the server and of all of NormViz: before the attack, at
    most, at its end, and so many seconds later. `load` is the machine's before it."""

    name: str
    load: float
    without: Felt
    during: Felt
    failures: list[str]
    server: tuple[float, float, float, float]
    all: tuple[float, float, float, float]

    def wrong(self, calm: float) -> list[str]:
        """The goals that were missed; `calm` is what the server has after the same time without an attack."""
        seen, found = self.during, list[str]()
        if self.failures:
            found.append(f"{len(self.failures)} cut off ({max(set(self.failures), key=len)[:90]})")
        if seen.page[1] > PAGE_SECONDS:
            found.append("pages late")
        if seen.click[1] > PAGE_SECONDS:
            found.append("clicks late")
        if seen.updates[1] < UPDATES:
            found.append("charts slow")
        if self.all[1] > MEMORY_MIB:
            found.append("memory high")
        if self.server[3] > BACK_SHARE * max(self.server[0], calm):
            found.append("memory not back")
        return found

    def row(self, wrong: list[str]) -> tuple[str, ...]:
        """A row of the table."""
        both = self.without, self.during
        return (
            self.name, f"{self.load:.1f}",
            *(f"{_said(getattr(it, name), digits)}" for name, digits in SEEN.items() for it in both),
            str(len(self.failures)), *(" ".join(f"{x:.0f}" for x in one) for one in (self.server, self.all)),
            "; ".join(wrong) or "held",
        )  # fmt: skip


SEEN = {"page": 2, "click": 2, "updates": 1}
"""What visitors feel, and the digits of it."""
HEAD = (
    "attack", "load", "page, s", "with it", "click, s", "with it", "updates/s", "with it", "cut off",
    "server, MiB", "all, MiB", "outcome",
)  # fmt: skip


def _said(pair: tuple[float, float], digits: int) -> str:
    return f"{pair[0]:.{digits}f} ({pair[1]:.{digits}f})"


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"{NONE}, {', '.join(ATTACKS)}")] = None,
    visitors: int = 20,
    seconds: float = 60.0,
    after: float = 60.0,
    cgroup: Path | None = None,
    record: bool = False,
) -> None:
    """Run each attack for `seconds`, and weigh the server `after` seconds later; all if none is named.
    `record` keeps the result for the hosting README."""
    known = (NONE, *ATTACKS)
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"{name[:40]!r} is no attack, allowed are {', '.join(known)}")
    within = () if cgroup is None else ("sh", "-c", JOIN, str(cgroup))
    found, wrong = list[Attacked](), list[list[str]]()
    words = (
        f"{visitors} visitors of a shared server (hosted mode) who watch a duel and click every "
        f"{PAUSE_SECONDS:g} s, {CHURN:g} a second replaced; each attack of one network address for "
        f"{seconds:g} s, after as long without it. page: of a new visitor, until usable; click: until "
        f"rendered; median (95 of 100). updates of the charts: median (worst visitor). Memory of the "
        f"server and of all of NormViz: before, at most, at the end, {after:g} s later"
    )
    for name in sorted(names or known, key=known.index):
        found.append(one := measure(name, visitors, seconds, after, within))
        calm = found[0].server[3] if found[0].name == NONE else 0.0
        wrong.append(one.wrong(calm))
        print(*one.row(wrong[-1]), sep="  ", flush=True)
        if record:
            _record(asdict(one) | {"wrong": wrong[-1]}, f"{words}; {os.cpu_count()} cores")
    print(f"{words}. {cores()}")
    print(table([HEAD, *(one.row(missed) for one, missed in zip(found, wrong, strict=True))]))
    raise typer.Exit(int(any(wrong)))


def _record(row: dict[str, Any], words: str) -> None:
    """Keep a row, in the place of the one of its name."""
    rows = json.loads(FILE.read_text())["rows"] if FILE.exists() else []
    rows = [*(one for one in rows if one["name"] != row["name"]), row]
    rows.sort(key=lambda one: (NONE, *ATTACKS).index(one["name"]))
    text = ",\n".join(json.dumps(one) for one in rows)
    FILE.write_text(f'{{"words": {json.dumps(words)}, "rows": [\n{text}\n]}}\n')


def measure(
    name: str, visitors: int, seconds: float, after: float, within: Sequence[str] = ()
) -> Attacked:
    """Run one attack; `within` are words before the commands of server and proxy. Raises TimeoutError if the
    visitors get no page even before it."""
    load, front = os.getloadavg()[0], partial(proxied, within=within)
    with shared(visitors, front, within, per_second=8.0, pause=PAUSE_SECONDS) as it:
        it.crowd.say(churn=CHURN)
        it.watch(2.0, SAMPLE_SECONDS)
        it.crowd.mark()
        before = it.watch(seconds, SAMPLE_SECONDS)[-1]
        without = it.crowd.mark()
        with attacking(it.url, name):
            weights = it.watch(seconds, SAMPLE_SECONDS)
            seen = it.crowd.mark()
        later = it.watch(after, SAMPLE_SECONDS)[-1]
    server = [one.server for one in weights]
    every = [one.all for one in weights]
    return Attacked(
        name, round(load, 1), Felt.of(without), Felt.of(seen), seen.failures,
        (before.server, max(server), server[-1], later.server),
        (before.all, max(every), every[-1], later.all),
    )  # fmt: skip


@contextmanager
def proxied(url: str, within: Sequence[str] = ()) -> Iterator[str]:
    """The kept proxy (Debian's nginx) before a server; `within` are words before its command. It believes the
    addresses that visitors state."""
    kept = (Path(__file__).parents[2] / "assets" / "deploy" / "nginx.conf").read_text()
    port, behind = free_port(), url.rpartition(":")[2]
    with tempfile.TemporaryDirectory() as folder:
        text = kept.replace("listen 8501", f"listen 127.0.0.1:{port}").replace("8502", behind)
        user = "user root;\n" if os.geteuid() == 0 else ""
        (Path(folder) / "nginx.conf").write_text(user + text)
        (Path(folder) / "proxies.conf").write_text("set_real_ip_from 127.0.0.1;")
        nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin") or "nginx"
        command = [*within, nginx, "-p", folder, "-e", "stderr", "-c", "nginx.conf"]
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
    """The value that 95 of 100 do not exceed."""
    return sorted(values)[ceil(0.95 * len(values)) - 1]


def _pair(values: Sequence[float]) -> tuple[float, float]:
    """The median, and what 95 of 100 do not exceed; infinite without values."""
    return (median(values), _most(values)) if values else (inf, inf)


if __name__ == "__main__":
    typer.run(main)
