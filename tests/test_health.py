"""`normviz status` and `/healthz`: they say what is true, and fail when something is not well."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest
from backend_kit import LONG, SHORT, Lane, wait_for
from browser_kit import server
from cli_kit import normviz
from filelock import FileLock
from hosted_kit import turn_on
from normviz.app.asgi import health
from normviz.app.session.markdown import literal
from normviz.app.widgets import store_errors
from shelf_kit import fill, kept
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from test_deploy import command, is_healthy, setting_of_a_space

from normviz.execution.budget import default_slots
from normviz.execution.health import unreadable
from normviz.execution.heartbeat import SILENT_SECONDS
from normviz.home import VARIABLE
from normviz.policy import STORE, STORE_FULL, Policy
from normviz.runs.store import Store, disk_reserve, retention


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return Store(tmp_path)


def status() -> tuple[int, dict[str, Any]]:
    done = normviz("status", "--json")
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.slow
def test_without_a_supervisor_it_is_not_well(here: Store) -> None:
    kept(here, status="failed")
    here.announce(os.getpid(), ready=True, slots=2, workers=4)  # one that left no word
    code, said = status()
    assert (code, said["healthy"], said["supervisor"], said["workers"]) == (1, False, "dead", 0)
    assert said["store"] == "ok"
    lines = normviz("status").stdout
    assert "supervisor  none" in lines and "failed      run 1, just now: no memory" in lines


def test_a_full_disk_is_said_and_not_well(here: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with FileLock(here.folder / "supervisor.lock"):
        code, said = status()
        assert (code, said["disk"], said["refuses"]) == (0, None, None)
        monkeypatch.setattr(disk_reserve, "free", lambda folder: 4096)
        code, said = status()
        assert (code, said["healthy"]) == (1, False) and "is full (4 KiB free)" in said["disk"]
        assert "is full (4 KiB free)" in normviz("status").stdout


def test_a_store_that_takes_no_new_runs_says_so(
    here: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has is served, so it is well."""
    monkeypatch.setenv(STORE, "1")
    turn_on(monkeypatch, here)
    runs = fill(here, 12)
    with FileLock(here.folder / "supervisor.lock"):
        assert status()[1]["refuses"] is None  # the oldest may go
        retention.link(here, runs)
        assert status()[1]["refuses"] is None  # linked ones go last, and may go
        here.db.connection.execute("UPDATE runs SET origin = 'shipped'")
        code, said = status()
        assert (code, said["refuses"]) == (0, STORE_FULL)
        assert STORE_FULL in normviz("status").stdout


def test_a_store_that_can_t_be_read_is_not_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    Store(tmp_path).db.connection.execute("DROP TABLE steps")
    Store(tmp_path).db.connection.execute("DROP TABLE runs")
    code, said = status()
    assert code == 1 and not said["healthy"] and "can't be read" in said["store"]
    assert "can't be read" in normviz("status").stdout


def asked(address: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=120) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def supervisor_of(store: Store) -> int:
    return store.db.connection.execute("SELECT pid FROM supervisor").fetchone()["pid"]


def _gone(folder: Path) -> bool:
    """Delete a folder in which others may make files meanwhile; whether that was all of it."""
    try:
        shutil.rmtree(folder)
    except OSError:
        return False
    return True


def stays_counted_and_is_not_well_while_it_hangs(store: Store, pid: int) -> None:
    """What `normviz status` says of a server that works, and whose supervisor is stopped."""
    slots = default_slots(Policy())
    lanes = [Lane(store, LONG.replace(init_seed=seed)) for seed in range(slots)]
    for lane in lanes:
        lane.reach_step(1)
    queued = [store.enqueue(SHORT, visitor=visitor) for visitor in ("a", "a", "b")]
    wait_for(lambda: status()[0] == 0, "its beat")
    code, said = status()
    census = said["census"]
    assert (code, said["supervisor"]) == (0, "alive") and said["workers"] >= 2
    assert (census["running"], census["queued"], census["visitors"]) == (slots, 3, 2)
    assert census["runs"] - census["shipped"] == 1 + slots + 3 and census["bytes"] > 0
    assert f"3 wait, {slots} train, 0 paused, of 2 visitors" in normviz("status").stdout
    for run in (*queued, *(lane.id for lane in lanes)):
        store.control(run, "stop")
    for lane in lanes:
        lane.reach("stopped")
    os.kill(pid, signal.SIGSTOP)  # its lock is held all the same
    try:
        time.sleep(SILENT_SECONDS)
        wait_for(lambda: status()[1]["supervisor"] == "silent", "that it hangs")
        code, said = status()
        assert (code, said["healthy"]) == (1, False)
        assert "hangs" in normviz("status").stdout
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: status()[0] == 0, "its next beat")


@pytest.mark.slow
def test_healthz_follows_supervisor_store_and_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a container of a Space starts it and asks it. A folder that was deleted is made again, with run
    numbers that no open page knows."""
    folder = tmp_path / "data"
    monkeypatch.setenv(VARIABLE, str(folder))
    (tmp_path / "space").mkdir()
    monkeypatch.setenv(*setting_of_a_space(tmp_path / "space"))
    name, *words = command()
    assert name == "normviz"
    at = words.index("--port")
    del words[at : at + 2]
    with server(folder, words=words) as (address, _):
        store = Store(folder)
        wait_for(lambda: asked(address)[0] == 200, "a supervisor, which asking starts")
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=60) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[2].strip()
        assert cookie == "Path=/; SameSite=None; Secure"  # a browser keeps it in a frame
        wait_for(lambda: asked(address)[1]["supervisor"] == "alive", "a warm worker")
        pid = supervisor_of(store)
        said = asked(address)[1]
        assert said["healthy"] and said["store"] == "ok" and "failures" not in said["census"]
        first = Lane(store, SHORT)
        first.reach("finished")
        stays_counted_and_is_not_well_while_it_hangs(store, pid)

        store.db.connection.execute("ALTER TABLE runs RENAME TO gone")
        code, said = asked(address)
        assert code == 503 and "can't be read" in said["store"] and not is_healthy(address)
        store.db.connection.execute("ALTER TABLE gone RENAME TO runs")
        wait_for(lambda: asked(address)[0] == 200, "the store")
        assert is_healthy(address)

        wait_for(lambda: _gone(folder), "the end of the folder")
        wait_for(lambda: asked(address)[0] == 200, "another supervisor")
        lane = Lane(Store(folder), SHORT)
        lane.reach("finished")
        assert lane.id > first.id + 1000 and asked(address)[1]["census"]["shipped"] > 0
        assert not psutil.pid_exists(pid)
    assert not is_healthy(address) and status()[0] == 1


def test_a_shared_server_does_not_say_where_its_data_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the page and to whoever asks for its health; an operator's own machine says it."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    error = (
        f"the store {folder / 'normviz.sqlite'} can't be read; a folder '{folder}' can't be made"
    )
    monkeypatch.setattr(health, "_read", lambda: unreadable(error))
    with TestClient(Starlette(routes=[Route("/healthz", health.healthz)])) as client:
        assert client.get("/healthz").json()["store"] == error
        turn_on(monkeypatch)
        said = client.get("/healthz").json()["store"]
    assert (
        said == "the store normviz.sqlite can't be read; a folder 'the data folder' can't be made"
    )
    assert store_errors._sentence(error) == literal(f"T{said[1:]}.")
