"""Random SIGKILLs of a server while runs and cells train, and what comes of each.

    python -m tests.bench.kills --kills 100

After each the server is started again where it was killed, and asked for its health as a container does.
`true`: seconds until it answers, no run is told to train whose process is gone, and a supervisor is told
where there is one. `ready`: seconds until a warm worker waits. Then a run that waited in the queue trains.
The test looks at processes and rows, and takes no process's word. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import psutil
import typer
from backend_kit import LONG, SHORT, Lane, wait_for

from normviz.cli.bench_server import free_port
from normviz.home import VARIABLE
from normviz.runs.store import Store, cells
from normviz.runs.store.repair import damage

from .kit import cores, table

VICTIMS = ("server", "supervisor", "worker", "fork server", "cell worker")
SUPERVISOR = "normviz.execution.supervise"
VISITOR = "somebody"
GOAL_SECONDS, PATIENCE_SECONDS = 5.0, 120.0
CELL = SHORT.replace(depth=8, steps=2000)
"""About two seconds."""
COUNT = "SELECT run, COUNT(*) FROM steps GROUP BY run"
HOLES = "SELECT run FROM steps GROUP BY run HAVING MAX(step) + 1 != COUNT(*)"
TWICE = "SELECT key FROM runs WHERE status = 'finished' AND origin = 'sweep' GROUP BY key HAVING COUNT(*) > 1"


@dataclass
class Fell:
    """The kills of one kind: seconds, rows that were committed before, rows that are gone, runs and cells
    that are there twice or with a hole, and processes that were to end and did not."""

    true: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    rows: int = 0
    lost: int = 0
    twice: int = 0
    left: int = 0

    def row(self, name: str) -> tuple[str, ...]:
        """A row of the table."""
        seconds = [f"{median(x):.2f} ({max(x):.2f})" for x in (self.true, self.ready)]
        counts = (self.rows, self.lost, self.twice, self.left)
        return (name, str(len(self.true)), *seconds, *(f"{n:,}" for n in counts))


class App:
    """`normviz app` on a folder, and what is there of it."""

    def __init__(self, folder: Path) -> None:
        self.store, self.address, self.seeds = Store(folder), f"127.0.0.1:{free_port()}", Random(0)
        self.begin()

    def begin(self) -> None:
        """Start it."""
        host, _, port = self.address.partition(":")
        words = ["app", "--no-browser", "--host", host, "--port", port]
        words += ["--data", str(self.store.folder)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.server = subprocess.Popen([sys.executable, "-m", "normviz", *words], **quiet)

    def health(self) -> dict[str, Any] | None:
        """Its answer; None where it gives none."""
        with suppress(OSError, ValueError):
            try:
                with urllib.request.urlopen(f"http://{self.address}/healthz", timeout=2) as said:
                    return json.load(said)
            except urllib.error.HTTPError as said:
                return json.load(said)
        return None

    def is_ready(self) -> bool:
        """Whether it is well and a warm worker waits."""
        said = self.health()
        return bool(said and said["healthy"] and said["census"]["ready"])

    def processes(self, word: str = "") -> list[psutil.Process]:
        """Those that use its folder, the server and all that comes of it, with this word in their command."""
        found = list[psutil.Process]()
        for one in psutil.process_iter():
            with suppress(psutil.Error):
                is_ours = one.environ().get(VARIABLE) == str(self.store.folder)
                if is_ours and word in " ".join(one.cmdline()) and lives(one):
                    found.append(one)
        return found

    def victim(self, kind: str, run: Lane, cell: int) -> psutil.Process:
        """The process of this kind."""
        if kind == "server":
            return psutil.Process(self.server.pid)
        if kind == "worker":
            return psutil.Process(run.pid)
        if kind == "cell worker":
            return psutil.Process(running(self.store)[cell])
        (supervisor,) = self.processes(SUPERVISOR)
        forks = (one for one in self.processes("forkserver") if one.ppid() == supervisor.pid)
        return supervisor if kind == "supervisor" else next(forks)


def lives(process: psutil.Process) -> bool:
    """Whether it runs and is no zombie."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def running(store: Store) -> dict[int, int]:
    """The processes of cells that train, by the cells' numbers."""
    rows = store.db.connection.execute(
        "SELECT id, pid FROM runs WHERE status = 'running' AND origin = 'sweep'"
    )
    return {row["id"]: row["pid"] for row in rows if row["pid"] and psutil.pid_exists(row["pid"])}


def killed(app: App, kind: str, fell: Fell) -> None:
    """Kill one process of this kind while two runs and cells train and one run waits."""
    store, db, new = app.store, app.store.db.connection, lambda: app.seeds.randrange(10**6)
    lanes = [Lane(store, LONG.replace(init_seed=new())) for _ in range(2)]
    asked = [CELL.replace(init_seed=new()) for _ in range(6)]
    cells.ask(store, asked, "map", VISITOR)
    wait_for(lambda: app.health() and all(lane.n > 3 for lane in lanes), "steps of two runs")
    waits = Lane(store, SHORT)
    time.sleep(app.seeds.uniform(0, 0.3))
    wait_for(lambda: running(store), "a cell that trains")
    ship, before, holes = shipped(store), dict(db.execute(COUNT)), set(db.execute(HOLES))
    there, victim = app.processes(), app.victim(kind, lanes[0], min(running(store), default=0))
    own = {lane: psutil.Process(lane.pid) for lane in lanes}
    began = time.monotonic()
    victim.kill()
    if kind == "server":
        app.server.wait()
        app.begin()

    def is_true() -> bool:
        said = app.health()
        gone = [lane for lane, process in own.items() if not lives(process)]
        told = said is not None and said["supervisor"] in ("alive", "starting")
        return said is not None and told == bool(app.processes(SUPERVISOR)) and all(
            lane.status == "failed" for lane in gone
        )  # fmt: skip

    wait_for(is_true, f"the truth after a killed {kind}", PATIENCE_SECONDS)
    fell.true.append(time.monotonic() - began)
    wait_for(app.is_ready, f"a warm worker after a killed {kind}", PATIENCE_SECONDS)
    fell.ready.append(time.monotonic() - began)
    ends = {"server": there, "supervisor": [one for one in there if one.pid != app.server.pid]}
    fell.left += sum(map(lives, psutil.wait_procs(ends.get(kind, [victim]), GOAL_SECONDS)[1]))
    for lane in lanes:
        store.control(lane.id, "stop")
    wait_for(lambda: app.health() and waits.status == "finished", "the run that waited")
    keys = [one.key for one in asked]
    cells.stop(store, keys, VISITOR)
    wait_for(
        lambda: app.health() and not cells.opened(store, keys, VISITOR), "the end of the cells"
    )
    after = dict(db.execute(COUNT))
    fell.rows += sum(n for run, n in before.items() if run not in ship)
    fell.lost += sum(max(0, n - after.get(run, 0)) for run, n in before.items())
    fell.twice += len(set(db.execute(HOLES)) - holes) + len(db.execute(TWICE).fetchall())
    for run in after.keys() - ship:
        store.delete(run)


def shipped(store: Store) -> set[int]:
    """The runs that ship."""
    rows = store.db.connection.execute("SELECT id FROM runs WHERE origin LIKE 'shipped%'")
    return {row["id"] for row in rows}


def main(kills: int = 100, seed: int = 0, kind: str | None = None) -> None:
    """Kill so many processes, each kind as often, or those of one `kind`."""
    kinds = VICTIMS if kind is None else (kind,)
    found = {one: Fell() for one in kinds}
    with tempfile.TemporaryDirectory() as folder:
        app = App(Path(folder))
        app.seeds.seed(seed)
        try:
            wait_for(app.is_ready, "the server")
            order = [kinds[i % len(kinds)] for i in range(kills)]
            app.seeds.shuffle(order)
            for one in order:
                killed(app, one, found[one])
                print(*found[one].row(one), f"load {os.getloadavg()[0]:.1f}", flush=True)
        finally:
            last = app.processes()
            app.server.terminate()
            app.server.wait()
        stayed = psutil.wait_procs(last, GOAL_SECONDS)[1]
        harm = damage(app.store.db.path, thorough=True)
    print(f"{kills} SIGKILLs, seed {seed}, {cores()}; seconds are the median (the longest)")
    head = ("killed", "times", "true, s", "ready, s", "rows before", "lost", "twice", "left")
    print(table([head, *(fell.row(one) for one, fell in found.items())]))
    print(f"file: {harm or 'intact'}; processes left at the end: {len(stayed)}")
    slow = any(max(fell.true + fell.ready) > GOAL_SECONDS for fell in found.values())
    bad = sum(fell.lost + fell.twice + fell.left for fell in found.values()) + len(stayed)
    raise typer.Exit(int(bool(slow or bad or harm)))


if __name__ == "__main__":
    typer.run(main)
