"""The soak test: hostile links through every page's state, and random kills while runs train.

SIGKILL ends a worker, the process that forks workers, the supervisor or the server. After each kill the
store is read as the page reads it. The test does not rely on the processes' own reports: it counts rows,
checks the file, and trains a new run to its end. Exit code 1 after a violation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs

import psutil
import typer
from backend_kit import LONG, SHORT, Lane, wait_for
from hostile_kit import link, query

from normviz.cli.bench_server import below, free_port
from normviz.home import VARIABLE
from normviz.runs.store import Store
from normviz.runs.store.repair import damage

from .kit import cores, table

DRAWN = 100
"""One link in so many also renders its whole page; at least ten links do, one per page."""
KINDS = {"worker": 4, "forkserver": 1, "supervisor": 3, "server": 2}
"""What is killed, and how often in ten. A forkserver is the parent of all workers, on Linux alone."""
TRUE_SECONDS = 5.0
PATIENCE_SECONDS = 120.0


def main(
    links: int = 10_000,
    kills: int = 100,
    seconds: float = 3600.0,
    seed: int = 0,
    kind: str | None = None,
) -> None:
    """Open links, then kill processes (of one `kind`) while runs train; no kill starts after `seconds`."""
    until, random, wrong = time.monotonic() + seconds, Random(seed), list[str]()
    with tempfile.TemporaryDirectory() as name:
        if links:
            wrong += opened(Path(name, "links"), [link(random) for _ in range(links)])
        if kills:
            weights = {kind: 1} if kind else KINDS
            wrong += killed(Path(name, "kills"), kills, weights, random, until)
    print(f"seed {seed}, {cores()}; violations: {len(wrong)}")
    for why in wrong[:20]:
        print(f"  {why}")
    raise typer.Exit(int(bool(wrong)))


# Hostile links


def opened(folder: Path, links: list[dict[str, list[str]]]) -> list[str]:
    """What is wrong with the pages' own code on the links, in a process of its own (`links.py`)."""
    began = time.monotonic()
    (folder / "tmp").mkdir(parents=True)
    every = max(1, len(links) // max(10, len(links) // DRAWN))
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.links", str(every)], stdout=subprocess.PIPE, text=True,
        check=True, input="\n".join(map(_arrived, links)),
        env={**os.environ, VARIABLE: str(folder), "TMPDIR": str(folder / "tmp"),
             "PYTHONDONTWRITEBYTECODE": "1", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"},
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    counts: dict[str, int] = found["counts"]
    print(
        f"{len(links):,} hostile links, each through the states of five pages, "
        f"{time.monotonic() - began:.0f} s"
    )
    rows = [
        (name, *(f"{counts.get(f'{name} {what}', 0):,}" for what in ("taken", "told")))
        for name in ("duel", "maps", "anatomy", "hand", "choose")
    ]
    print(table([("page", "taken", "told"), *rows]))
    print(f"whole pages drawn: {counts.get('pages drawn', 0):,} (the ten views alternate)")
    print(
        f"tracebacks, silent changes, writes outside the store: {len(found['wrong'])}", flush=True
    )
    return found["wrong"]


def _arrived(params: dict[str, list[str]]) -> str:
    """A link's parameters as the server receives them, as JSON."""
    return json.dumps(parse_qs(query(params), keep_blank_values=True))


# Random kills while a server trains


@dataclass
class Fell:
    """Results of the kills of one kind; seconds are the longest."""

    kills: int = 0
    rows: int = 0
    truth: float = 0.0
    again: float = 0.0
    wrong: list[str] = field(default_factory=list)


class Server:
    """`normviz app` on a folder, and the requests that keep it training."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address, self.looked = folder, "", 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        """Start it unless it runs, and send a request, which starts a supervisor if there is none."""
        if time.monotonic() - self.looked < 0.3:
            return
        if self.process is None or self.process.poll() is not None:
            port = str(free_port())
            self.address = f"http://127.0.0.1:{port}"
            self.process = subprocess.Popen(
                [sys.executable, "-m", "normviz", "app", "--no-browser", "--host", "127.0.0.1",
                 "--port", port, "--data", str(self.folder)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        with suppress(OSError):  # it is not up yet, or not well yet, and it has looked
            urllib.request.urlopen(f"{self.address}/healthz", timeout=5).close()
        self.looked = time.monotonic()

    def kill(self) -> None:
        """Kill the process and wait until it has ended."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Keep it up until `done()`. Raises TimeoutError."""

        def looks() -> bool:
            self.up()
            return done()

        wait_for(looks, what, PATIENCE_SECONDS)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server that is killed on exit."""
    server = Server(folder)
    try:
        yield server
    finally:
        if server.process is not None:
            started = (
                below(psutil.Process(server.process.pid)) if server.process.poll() is None else []
            )
            server.kill()
            psutil.wait_procs(started, timeout=60)  # they may still write into the folder


def killed(
    folder: Path, n: int, weights: dict[str, int], random: Random, until: float
) -> list[str]:
    """At most `n` kills before `until` (`time.monotonic()`); what was wrong."""
    folder.mkdir()
    began, found = time.monotonic(), {kind: Fell() for kind in weights}
    store = Store(folder)
    with serving(folder) as server:
        expected = _trained(store, server)
        while sum(one.kills for one in found.values()) < n and time.monotonic() < until:
            (kind,) = random.choices(tuple(weights), tuple(weights.values()))
            fell = found[kind]
            try:
                _kill(store, server, kind, random, fell, expected)
            except TimeoutError as error:
                fell.wrong.append(str(error))
            fell.kills += 1
    done = sum(one.kills for one in found.values())
    print(
        f"{done} of {n} kills (SIGKILL) while two runs train, {time.monotonic() - began:.0f} s; the longest "
        "of each kind:"
    )
    rows = [
        (
            kind,
            str(it.kills),
            f"{it.rows:,}",
            f"{it.truth:.2f} s",
            f"{it.again:.1f} s",
            str(len(it.wrong)),
        )
        for kind, it in found.items()
    ]
    print(
        table(
            [("killed", "times", "rows at risk", "status true", "next run ended", "wrong"), *rows]
        )
    )
    print(
        f"after each: status true within {TRUE_SECONDS:g} s, no committed row gone, integrity_check ok, a "
        "new run ends with the same numbers"
    )
    return [f"{kind}: {why}" for kind, one in found.items() for why in one.wrong]


def _kill(
    store: Store, server: Server, kind: str, random: Random, fell: Fell, expected: bytes
) -> None:
    lanes = [Lane(store, LONG.replace(init_seed=random.randrange(10**6))) for _ in range(2)]
    server.wait(lambda: all(lane.n > 3 for lane in lanes), "steps of two runs")
    time.sleep(random.uniform(0, 0.3))
    before = _all_rows(store)
    victim = _victim(store, kind, lanes[0])
    began = time.monotonic()
    if victim is None:
        server.kill()
    else:
        victim.kill()
    gone = lanes if kind != "worker" else lanes[:1]
    wait_for(
        lambda: all(lane.status == "failed" for lane in gone),
        f"the truth about the runs of a killed {kind}",
        PATIENCE_SECONDS,
    )
    fell.truth = max(fell.truth, took := time.monotonic() - began)
    if took > TRUE_SECONDS:
        fell.wrong.append(f"the status was true after {took:.1f} s")
    if kind == "worker":
        n = lanes[1].n
        server.wait(lambda: lanes[1].n > n, "the other run to go on")
        store.control(lanes[1].id, "stop")
        server.wait(lambda: lanes[1].status == "stopped", "the other run's stop")
    began = time.monotonic()
    if _trained(store, server) != expected:
        fell.wrong.append("a run after the kill has other numbers")
    fell.again = max(fell.again, time.monotonic() - began)
    after = _all_rows(store)
    lost = [run for run, rows in before.items() if after.get(run, 0) < rows]
    if lost:
        fell.wrong.append(f"rows of runs {lost} are gone")
    if why := damage(store.db.path, thorough=True):
        fell.wrong.append(f"the file is damaged: {why}")
    fell.rows += sum(before[lane.id] for lane in lanes)
    for lane in lanes:
        store.delete(lane.id)


def _victim(store: Store, kind: str, lane: Lane) -> psutil.Process | None:
    """The process to kill; None for the server."""
    match kind:
        case "worker":
            return psutil.Process(lane.pid)
        case "forkserver":
            return psutil.Process(lane.pid).parent()
        case "supervisor":
            row = store.db.connection.execute("SELECT pid FROM supervisor").fetchone()
            return psutil.Process(row["pid"])
    return None


def _trained(store: Store, server: Server) -> bytes:
    """Train a new run to its end; its losses as bytes."""
    lane = Lane(store, SHORT)
    server.wait(lambda: lane.status == "finished", "a new run to its end")
    losses = store.losses(lane.id).tobytes()
    store.delete(lane.id)
    return losses


def _all_rows(store: Store) -> dict[int, int]:
    rows: Any = store.db.connection.execute("SELECT run, COUNT(*) FROM steps GROUP BY run")
    return dict(rows.fetchall())


if __name__ == "__main__":
    typer.run(main)
