"""The store stays within its limit: the oldest runs go, linked ones last and not silently, shipped
and open ones never."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from backend_kit import SHORT, Lane, wait_for
from cli_kit import normviz
from filelock import FileLock
from hosted_kit import supervisor
from shelf_kit import LARGE, SMALL, fill

from normviz.home import VARIABLE
from normviz.policy import Policy
from normviz.runs import collect
from normviz.runs.store import Store, retention
from normviz.training.events import Finished, Started


def left(store: Store) -> list[int]:
    rows = store.db.connection.execute("SELECT id FROM runs ORDER BY id").fetchall()
    return [row["id"] for row in rows]


def ship(store: Store) -> int:
    started = Started(LARGE.replace(lr=0.5), "cpu", 1, 1234, 3.3, 1.1, None)
    return store.keep_all([collect([started, Finished(0)])], "shipped")[0]


def test_the_oldest_go_first_and_only_as_many_as_have_to(store: Store) -> None:
    shipped, runs = ship(store), fill(store)
    one = (retention.size(store) - 50_000) // 6
    limit = retention.size(store) - int(1.5 * one)
    retention.link(store, [runs[0], runs[0], 10**9])
    open_run = store.enqueue(SMALL)
    expected = retention.would_drop(store, limit)
    assert left(store) == [shipped, *runs, open_run]
    gone = list(retention.drop(store, limit))
    assert gone == runs[1:3] == expected
    assert retention.size(store) < limit
    assert left(store) == [shipped, runs[0], *runs[3:], open_run]
    assert list(retention.drop(store, limit)) == []


def test_below_the_limit_nothing_goes_and_beyond_it_down_to_the_goal(store: Store) -> None:
    runs = fill(store)
    size = retention.size(store)
    assert list(retention.drop(store, size + 1, goal=1)) == []
    gone = list(retention.drop(store, size, goal=size // 2))
    assert gone == runs[: len(gone)] and 2 <= len(gone) < 6
    assert retention.size(store) < size // 2


def test_when_all_that_is_left_stays_the_store_is_full(store: Store) -> None:
    shipped, runs = ship(store), fill(store, 3)
    retention.link(store, runs[:2])
    store.policy = Policy(store_bytes=1000)
    assert not retention.is_full(store)
    assert list(retention.drop(store, 1000)) == runs[2:]
    assert list(retention.drop(store, 1000, linked=True)) == runs[:2]
    assert left(store) == [shipped]
    assert retention.is_full(store)
    for limit in (10**9, None):
        store.policy = Policy(store_bytes=limit)
        assert not retention.is_full(store)


def test_linked_runs_go_last_and_are_remembered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = fill(store, 5)
    keys = [run.key for one in runs if (run := store.run(one))]
    retention.link(store, runs[:3])
    began = time.time()
    assert list(retention.drop(store, 1000, linked=True)) == [*runs[3:], *runs[:3]]
    gone = retention.dropped(store, keys)
    assert list(gone) == sorted(keys[:3]) and all(began <= at for at in gone.values())
    monkeypatch.setattr(retention, "REMEMBERED", 2)
    again = fill(store, 1)
    retention.link(store, again)
    list(retention.drop(store, 1000, linked=True))
    rows = store.db.connection.execute("SELECT COUNT(*) FROM dropped").fetchone()
    assert rows[0] == 2 and keys[0] in retention.dropped(store, keys)


def test_where_nothing_can_be_written_nothing_is_raised(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Marks and room are for later: a page and a supervisor on a full disk go on without them."""
    runs, waits = fill(store, 2), store.enqueue(SMALL, visitor="a")
    store.db.connection.execute("PRAGMA query_only = ON")
    assert list(retention.drop(store, 1000)) == []
    retention.link(store, runs)
    store.handed(waits)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    store.db.connection.execute("PRAGMA query_only = OFF")
    assert list(retention.drop(store, 1000)) == runs


def test_the_room_of_what_went_is_given_back(store: Store) -> None:
    fill(store)
    file = store.db.path
    store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.stat().st_size
    list(retention.drop(store, 1000))
    assert retention.size(store) < before // 4
    assert retention.shrink(store) is None
    assert file.stat().st_size < before // 4


@pytest.mark.slow
def test_the_supervisor_of_a_hosted_server_makes_room_and_hands_out_in_turn(tmp_path: Path) -> None:
    """One slot, so that runs begin in the order in which they are handed out."""
    store, short = Store(tmp_path), SHORT.replace(steps=5)
    runs = fill(store, 12)
    assert retention.size(store) > 1_500_000
    retention.link(store, runs[:2])
    a = [store.enqueue(short, visitor="a") for _ in range(4)]
    b = [store.enqueue(short, visitor="b") for _ in range(2)]
    queued = store.queued()
    assert queued == [a[0], b[0], a[1], b[1], a[2], a[3]]
    with supervisor(tmp_path, grace=600.0, store_mb=1, slots=1):
        wait_for(lambda: retention.size(store) < 1_000_000, "room")
        lane = Lane(store, SHORT)
        lane.reach("finished")
        wait_for(lambda: not store.view_counts(), "the end of all")
    began = {run: record.began for run in queued if (record := store.run(run))}
    assert all(began.values()) and sorted(began, key=lambda run: began[run] or 0.0) == queued
    stayed = left(store)
    new = [*sorted(queued), lane.id]
    assert stayed[:2] == runs[:2]
    assert stayed == runs[:2] + [run for run in runs[2:] if run >= stayed[2]] + new
    for run in stayed:
        record = store.run(run)
        assert record is not None and len(store.steps(record).step)


@pytest.mark.slow
def test_gc_says_what_would_go_and_then_deletes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    store = Store(tmp_path)
    runs = fill(store, 12)
    said = normviz("gc", "--mb", "1", "--dry-run").stdout
    assert "at most 1 MB wanted: would delete about" in said and left(store) == runs
    said = normviz("gc", "--mb", "1").stdout
    gone = [run for run in runs if run not in left(store)]
    assert f"deleted {len(gone)} runs, the first {gone[0]}, the last {gone[-1]}" in said
    assert gone == runs[: len(gone)] and retention.size(store) < 1_000_000
    retention.link(store, left(store))
    fill(store, 6)
    retention.link(store, left(store))
    assert "--linked deletes linked runs" in normviz("gc", "--mb", "1").stdout
    assert "deleted" in normviz("gc", "--mb", "1", "--linked").stdout
    assert retention.size(store) < 1_000_000


@pytest.mark.slow
def test_gc_keeps_no_worker_of_a_live_server_from_committing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To write the file anew takes the store for as long as that takes: that is for later."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    store = Store(tmp_path)
    fill(store, 12)
    store.db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = store.db.path.stat().st_size
    with FileLock(tmp_path / "supervisor.lock"):
        done = normviz("gc", "--mb", "1")
        assert "deleted" in done.stdout and "a server uses it" in done.stderr
        assert store.db.path.stat().st_size == before
    done = normviz("gc", "--mb", "1")
    assert "deleted 0 runs" in done.stdout and not done.stderr
    assert store.db.path.stat().st_size < before


def test_gc_wants_a_number(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert normviz("gc", "--mb", "0").exit_code == 2
    monkeypatch.setenv("NORMVIZ_STORE_MB", "much")
    done = normviz("gc")
    assert done.exit_code == 2 and done.stderr.startswith("normviz: NORMVIZ_STORE_MB is 'much'")
