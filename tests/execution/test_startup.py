"""A server whose workers can't start: it says so, and tries less and less often."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from backend_kit import SHORT, Lane, wait_for
from cli_kit import normviz
from normviz.app.session.progress import status
from page_kit import Open, words_of

from normviz.execution import startup
from normviz.execution.startup import Startup, problem
from normviz.execution.supervisor import Supervisor
from normviz.runs.frames import Frames
from normviz.runs.store import Store

NO_TORCH = """
from pathlib import Path
import os, sys
if "loaded" not in sys.modules:
    here = str(Path(__file__).parents[1])
    sys.path.remove(here)
    del sys.modules["torch"]
    import torch
    sys.modules["loaded"] = torch
    sys.path.insert(0, here)
with open(os.environ["TRIES"], "a") as tries:
    tries.write("x")
if not Path(os.environ["MENDED"]).exists():
    raise ImportError("libtorch is broken")
sys.modules["torch"] = sys.modules["loaded"]
"""
"""Loads PyTorch where it is imported first, in the process that forks, so that a try takes no second."""
SUPERVISOR = """
import os, sys, threading, time
from pathlib import Path
from normviz.execution import startup

def later():
    for name, seconds in (("LATER", 0.0), ("MENDED", 3600.0)):
        while not Path(os.environ[name]).exists():
            time.sleep(0.05)
        startup.STARTING_SECONDS = seconds

startup.STARTING_SECONDS, startup.LONGEST_PAUSE = 3600.0, 2.0
threading.Thread(target=later, daemon=True).start()
from normviz.execution.supervisor import serve
sys.exit(serve())
"""
"""One whose minute is over once the file `later` is there."""


@contextmanager
def broken(tmp_path: Path) -> Iterator[None]:
    """A supervisor on this folder whose workers can't load PyTorch until the file `mended` is there."""
    (tmp_path / "path" / "torch").mkdir(parents=True)
    (tmp_path / "path" / "torch" / "__init__.py").write_text(NO_TORCH)
    environment = {
        **os.environ,
        "NORMVIZ_HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path / "path"),
        "TRIES": str(tmp_path / "tries"),
        "LATER": str(tmp_path / "later"),
        "MENDED": str(tmp_path / "mended"),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)


@pytest.mark.slow
def test_a_server_without_workers_is_starting_then_failing_then_well(
    folder: Path, page: Open
) -> None:
    def told() -> tuple[int, str]:
        done = normviz("status", "--json")
        return done.exit_code, json.loads(done.stdout)["supervisor"]

    store = Store(folder)
    with broken(folder):

        def tries() -> int:
            return len((folder / "tries").read_text()) if (folder / "tries").exists() else 0

        wait_for(tries, "a try")
        assert told() == (0, "starting")
        wait_for(lambda: tries() > 4, "more tries")
        assert problem(folder) is None
        (folder / "later").touch()
        wait_for(lambda: problem(folder), "that a minute is over")
        assert told() == (1, "failing")
        assert "could start for a minute (the last one failed while it started)" in (
            normviz("status").stdout
        )
        run = store.run(store.enqueue(SHORT))
        assert run is not None
        words = status(Frames(store), [run])["words"]
        assert (
            words == "Waiting: no process that trains can start. The server tries again every 30 s"
        )
        (warning,) = page("v=1").warning
        assert words_of(warning).startswith("No process that trains could start for a minute")
        (folder / "mended").touch()
        Lane(store, SHORT.replace(lr=0.01)).reach("finished")
        wait_for(lambda: told() == (0, "alive"), "the next warm worker")
        assert not page("v=1").warning


def test_pauses_grow_and_end_with_the_first_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, tries = 100.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now)
    it = Startup(tmp_path)
    while now < 400.0:
        if it.may_try(False):
            tries.append(now)
            it.failed("it died")
            it.failed("so did the other one")
        assert bool(problem(tmp_path)) == (now > 100.0 + startup.STARTING_SECONDS)
        now += 0.25
    gaps = [b - a for a, b in zip(tries, tries[1:], strict=False)]
    assert gaps[:6] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0] and set(gaps[6:]) == {30.0}
    it.worked()
    assert it.may_try(False) and problem(tmp_path) is None


def test_a_worker_that_hangs_while_it_starts_is_said_and_a_long_wait_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    it = Startup(tmp_path)
    now += 600.0  # nothing was started meanwhile
    assert it.may_try(False) and it.may_try(True) and problem(tmp_path) is None
    now += 61.0
    assert it.may_try(True) and "none is ready yet" in (problem(tmp_path) or "")


@pytest.mark.parametrize(
    "error", [EOFError("unexpected EOF"), ConnectionRefusedError(111, "refused")]
)
def test_a_forkserver_that_dies_while_a_worker_starts_does_not_end_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def start(*_: object) -> None:
        raise error

    supervisor = Supervisor(Store(tmp_path), 1)
    monkeypatch.setattr(supervisor.context, "Process", lambda **_: SimpleNamespace(start=start))
    supervisor.refill()
    assert not supervisor.workers and str(error) in (supervisor.startup.why or "")
    assert not supervisor.startup.may_try(False)
