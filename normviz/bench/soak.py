"""The soak test: hostile links through every page's state, and random kills while runs train.

SIGKILL ends a worker, the process that forks workers, the supervisor or the server. After each kill the
store is read as the page reads it. The test does not rely on the processes' own reports: it counts rows,
checks the file, and trains a new run to its end.
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

from ..config import RunConfig
from ..home import VARIABLE, shipped
from ..runs.store import Run, Store
from ..runs.store.repair import damage
from .browser import all_ended, free_port
from .hostile import link, query

DRAWN = 100
"""One link in so many also renders its whole page; at least eight links do, one per page."""


@dataclass(frozen=True)
class Soaked:
    """`table` is the report; `wrong` has a sentence for each violation."""

    table: str
    wrong: list[str]


def soak(n_links: int, n_kills: int, seconds: float, seed: int = 0) -> Soaked:
    """Open the links first, then kill processes for the rest of the seconds."""
    until, random = time.monotonic() + seconds, Random(seed)
    lines: list[str] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if n_links:
            began = time.monotonic()
            found = _links(folder / "links", [link(random) for _ in range(n_links)])
            lines += _told(found, n_links, time.monotonic() - began)
            wrong += found["wrong"]
        if n_kills:
            began = time.monotonic()
            (folder / "kills").mkdir()
            fell = kills(folder / "kills", n_kills, random, until)
            lines += _felled(fell, n_kills, time.monotonic() - began)
            wrong += [f"{kind}: {why}" for kind, one in fell.items() for why in one.wrong]
    lines.append(f"seed {seed}, {os.cpu_count()} cores; violations: {len(wrong)}")
    return Soaked("\n".join([*lines, *(f"  {why}" for why in wrong[:20])]), wrong)


def _links(folder: Path, links: list[dict[str, list[str]]]) -> dict[str, Any]:
    """Results of the page's own code on the links, in a process of its own."""
    (folder / "tmp").mkdir(parents=True)
    script = shipped("app") / "bench" / "fuzzed.py"
    every = max(1, len(links) // max(8, len(links) // DRAWN))
    path = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script), str(every)], capture_output=True, text=True, check=False,
        input="\n".join(map(_arrived, links)), cwd=script.parent,
        env={**os.environ, VARIABLE: str(folder), "PYTHONPATH": path, "TMPDIR": str(folder / "tmp"),
             "PYTHONDONTWRITEBYTECODE": "1", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full"},
    )  # fmt: skip
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return {"counts": {}, "wrong": [f"the pages' process ended with {done.returncode}: {last}"]}
    return json.loads(done.stdout.splitlines()[-1])


def _arrived(params: dict[str, list[str]]) -> str:
    """A link's parameters as the server receives them, as JSON."""
    return json.dumps(parse_qs(query(params), keep_blank_values=True))


def _told(found: dict[str, Any], n: int, seconds: float) -> list[str]:
    counts = found["counts"]
    lines = [
        f"{n:,} hostile links, each through the states of four pages, {seconds:.0f} s",
        f"  {'page':12}{'taken':>10}{'told':>10}",
    ]
    for name in ("duel", "maps", "anatomy", "hand"):
        taken, told = (counts.get(f"{name} {what}", 0) for what in ("taken", "told"))
        lines.append(f"  {name:12}{taken:>10,}{told:>10,}")
    lines.append(
        f"  whole pages drawn: {counts.get('pages drawn', 0):,} (the eight views alternate)"
    )
    lines.append(f"  tracebacks, silent changes, writes outside the store: {len(found['wrong'])}")
    return lines


def _felled(fell: dict[str, Fell], asked: int, seconds: float) -> list[str]:
    done = sum(one.kills for one in fell.values())
    lines = [
        f"{done} of {asked} kills (SIGKILL) while two runs train, {seconds:.0f} s; the longest of each kind:",
        f"  {'killed':12}{'times':>8}{'rows at risk':>15}{'status true':>14}{'next run ended':>17}"
        f"{'wrong':>8}",
    ]
    for kind, one in fell.items():
        lines.append(
            f"  {kind:12}{one.kills:>8}{one.rows:>15,}{one.truth:>12.2f} s{one.again:>15.1f} s"
            f"{len(one.wrong):>8}"
        )
    lines.append(
        f"  after each: status true within {TRUE_SECONDS:g} s, no committed row gone, integrity_check ok, "
        "a new run ends with the same numbers"
    )
    return lines


# Random kills while a server trains.

KINDS = {"worker": 4, "forkserver": 1, "supervisor": 3, "server": 2}
"""What is killed, and how often in ten. A forkserver is the parent of all workers, on Linux alone."""
TRUE_SECONDS = 5.0
PATIENCE_SECONDS = 120.0
SHORT = RunConfig(depth=2, width=16, heads=2, seq_len=8, batch=4, steps=20)
LONG = SHORT.replace(steps=20_000, depth=64, seq_len=32, batch=8)
"""About four minutes by the fast engine."""


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
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def up(self) -> None:
        """Start it unless it runs, and send a request, which starts a supervisor if there is none."""
        if self.process is None or self.process.poll() is not None:
            port = free_port()
            self.address = f"http://127.0.0.1:{port}"
            command = [
                sys.executable,
                "-m",
                "normviz",
                "app",
                "--no-browser",
                "--host",
                "127.0.0.1",
            ]
            self.process = subprocess.Popen(
                [*command, "--port", str(port)], env={**os.environ, VARIABLE: str(self.folder)},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        with suppress(OSError):  # it is not up yet, or not well yet, and it has looked
            urllib.request.urlopen(f"{self.address}/healthz", timeout=5).close()

    def kill(self) -> None:
        """Kill the process and wait until it has ended."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server that is stopped on exit."""
    server = Server(folder)
    try:
        yield server
    finally:
        if server.process is not None:
            with all_ended(server.process.pid):
                server.kill()


def kills(folder: Path, n: int, random: Random, until: float) -> dict[str, Fell]:
    """At most `n` kills before `until` (`time.monotonic()`); the results by kind."""
    found = {kind: Fell() for kind in KINDS}
    store = Store(folder)
    with serving(folder) as server:
        expected = _trained(store, server)
        for _ in range(n):
            if time.monotonic() > until:
                break
            kind = random.choices(tuple(KINDS), tuple(KINDS.values()))[0]
            if kind == "forkserver" and sys.platform != "linux":
                kind = "worker"
            fell = found[kind]
            try:
                _one(store, server, kind, random, fell, expected)
            except TimeoutError as error:
                fell.wrong.append(str(error))
            fell.kills += 1
    return found


def _one(
    store: Store, server: Server, kind: str, random: Random, fell: Fell, expected: bytes
) -> None:
    lanes = [store.enqueue(LONG.replace(init_seed=random.randrange(10**6))) for _ in range(2)]
    _wait(lambda: all(_rows(store, run) > 3 for run in lanes), "steps of two runs", server)
    time.sleep(random.uniform(0, 0.3))
    before = _all_rows(store)
    victims = [_pid(store, "SELECT pid FROM runs WHERE id = ?", lanes[0])]
    if kind == "forkserver":
        victims = [psutil.Process(victims[0]).ppid()]
    if kind == "supervisor":
        victims = [_pid(store, "SELECT pid FROM supervisor WHERE ? >= 0", 0)]
    began = time.monotonic()
    if kind == "server":
        server.kill()
    else:
        psutil.Process(victims[0]).kill()
    gone = lanes if kind != "worker" else lanes[:1]
    fell.truth = max(fell.truth, _wait(lambda: all(_status(store, r) == "failed" for r in gone),
                                       f"the truth about the runs of a killed {kind}"))  # fmt: skip
    if (took := time.monotonic() - began) > TRUE_SECONDS:
        fell.wrong.append(f"the status was true after {took:.1f} s")
    if kind == "worker":
        n = _rows(store, lanes[1])
        _wait(lambda: _rows(store, lanes[1]) > n, "the other run to go on", server)
        store.control(lanes[1], "stop")
        _wait(lambda: _status(store, lanes[1]) == "stopped", "the other run's stop", server)
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
    fell.rows += sum(before[run] for run in lanes)
    for run in lanes:
        store.delete(run)


def _trained(store: Store, server: Server) -> bytes:
    """Train a new run to its end; its losses as bytes."""
    run = store.enqueue(SHORT)
    _wait(lambda: _status(store, run) == "finished", "a new run to its end", server)
    losses = store.losses(run).tobytes()
    store.delete(run)
    return losses


def _wait(done: Callable[[], bool], what: str, server: Server | None = None) -> float:
    """Seconds until `done()`; the server gets requests meanwhile. Raises TimeoutError."""
    began, looked = time.monotonic(), float("-inf")
    while not done():
        now = time.monotonic()
        if now - began > PATIENCE_SECONDS:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s in vain for {what}")
        if server is not None and now - looked > 0.3:
            looked = now
            server.up()
        time.sleep(0.01)
    return time.monotonic() - began


def _status(store: Store, run: int) -> str:
    found: Run | None = store.run(run)
    return found.status if found else "gone"


def _rows(store: Store, run: int) -> int:
    return store.db.connection.execute(
        "SELECT COUNT(*) FROM steps WHERE run = ?", (run,)
    ).fetchone()[0]


def _all_rows(store: Store) -> dict[int, int]:
    rows = store.db.connection.execute("SELECT run, COUNT(*) FROM steps GROUP BY run")
    return dict(rows.fetchall())


def _pid(store: Store, query: str, value: int) -> int:
    return store.db.connection.execute(query, (value,)).fetchone()["pid"]
