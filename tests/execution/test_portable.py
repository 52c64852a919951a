"""What trains needs nothing that only Linux has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from backend_kit import LONG, Lane, losses

from normviz.config import is_quick
from normviz.execution import Ended, Local, process
from normviz.execution.process import start
from normviz.runs.store import Store

LESS = """
import os
import pathlib

kill = os.kill
read, write = pathlib.Path.read_text, pathlib.Path.write_text


def checked(pid, number):
    assert number, "on Windows this ends the process"
    kill(pid, number)


def elsewhere(act):
    def call(path, *words, **more):
        if str(path).startswith("/proc"):
            raise FileNotFoundError(str(path))
        return act(path, *words, **more)
    return call


for name in ("nice", "killpg", "getpgid", "sched_getaffinity"):
    delattr(os, name)
os.kill = checked
pathlib.Path.read_text, pathlib.Path.write_text = elsewhere(read), elsewhere(write)
"""
SPAWNS = """
import sys
from types import SimpleNamespace
from normviz.execution import supervisor
assert supervisor.sys is sys
supervisor.sys = SimpleNamespace(platform="win32", stdin=sys.stdin, stderr=sys.stderr)
supervisor.SPARES = 1
sys.exit(supervisor.serve())
"""
"""A supervisor that forks no worker, as elsewhere than on Linux: each loads PyTorch itself."""


@pytest.fixture
def less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are started now lack what Windows lacks."""
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text(LESS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    code = "import os; print(hasattr(os, 'nice'))"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"False\n"


@pytest.mark.slow
@pytest.mark.usefixtures("less")
def test_a_run_trains_pauses_and_stops_without_them(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not is_quick(LONG)
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SPAWNS], stdin=subprocess.PIPE, start_new_session=True,
        env={**os.environ, "NORMVIZ_HOME": str(tmp_path)},
    )  # fmt: skip
    assert supervisor.stdin is not None
    try:
        lane = Lane(store, LONG)
        lane.reach_step(3)
        assert store.supervisor()[0]
        store.control(lane.id, "pause")
        lane.reach("paused")
        n = lane.n
        store.control(lane.id, "resume")
        lane.reach_step(n + 20)
        lane.stop()
        assert lane.steps.loss.tolist()[:20] == losses(LONG, 20)
    finally:
        supervisor.stdin.close()
        assert supervisor.wait(20) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("less")
def test_a_task_runs_without_them(tmp_path: Path) -> None:
    with Local(len, {"task": ("abc",)}, tmp_path) as pool:
        assert Ended("task", 3) in list(pool.events())
    with Local(os._exit, {"task": (7,)}, tmp_path) as pool:
        assert "ended with exit code 7" in str(list(pool.events())[-1])


def test_windows_says_that_it_runs_no_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.sys, "platform", "win32")
    with pytest.raises(OSError, match="maps and claims need Linux or macOS"):
        start("normviz.execution", tmp_path, stdin=subprocess.DEVNULL, pipes=[1])
