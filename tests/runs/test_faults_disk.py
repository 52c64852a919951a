"""A full disk, for real: the run fails with a sentence, rows stay, and then everything goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from backend_kit import LONG, SHORT, Lane, losses, wait_for
from faults_kit import LimitedFiles, SmallDisk, small_disk
from page_kit import MAIN

from normviz.execution.client import SupervisorClient
from normviz.runs.store import Store, StoreFull
from normviz.runs.store.disk_reserve import BYTES, give_up, hold, scarce


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 24 megabytes."""
    with small_disk(tmp_path, 24) as allowed:
        if not allowed:
            pytest.skip("only root may mount a small disk; the test of limited files runs anywhere")
        yield tmp_path


@pytest.mark.slow
def test_a_run_on_a_full_disk_fails_with_a_sentence_and_the_next_one_trains(tmp_path: Path) -> None:
    """Where root runs the tests first on a disk that is full, then where no file may grow."""
    with small_disk(tmp_path, 24) as allowed:
        backend = SupervisorClient(Store(tmp_path))
        backend.ensure()
        try:
            for kind in (SmallDisk, LimitedFiles) if allowed else (LimitedFiles,):
                _fails_and_goes_on(backend, kind)
        finally:
            backend.close()


def _fails_and_goes_on(
    backend: SupervisorClient, kind: type[SmallDisk] | type[LimitedFiles]
) -> None:
    assert backend.process is not None
    store, supervisor = backend.store, backend.process.pid
    lane = Lane(store, LONG)
    lane.reach_step(3)
    before = lane.steps.loss.tobytes()
    if kind is SmallDisk:
        wait_for(lambda: (store.folder / "held-back.room").exists(), "room that is held back")
    full = kind(store.folder, lambda: supervisor)
    full.fill()
    lane.reach("failed")  # whether it could be written down or not
    if kind is SmallDisk:  # in the room that is held back
        wait_for(lambda: "disk may be full" in (lane.run.message or ""), lambda: str(lane.run))
        query = "SELECT status FROM runs WHERE id = ?"
        row = store.db.connection.execute(query, (lane.id,)).fetchone()
        assert row["status"] == "failed"
        assert scarce(store.folder) is not None
    assert lane.steps.loss.tobytes().startswith(before)
    assert lane.steps.step.tolist() == list(range(lane.n))
    full.empty()
    wait_for(lambda: "disk may be full" in (lane.run.message or ""), lambda: str(lane.run))
    after = Lane(store, SHORT)
    after.reach("finished")
    assert after.steps.loss.tolist() == losses(SHORT)
    assert backend.process.poll() is None and backend.process.pid == supervisor
    assert lane.steps.loss.tobytes().startswith(before)


def test_a_statement_that_finds_no_room_leaves_nothing_and_the_store_works_on(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    kept = Lane(store, SHORT)
    db = store.db.connection
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    def fill() -> None:
        for _ in range(1000):
            store.enqueue(SHORT)

    with pytest.raises(StoreFull, match=r"can't be written .*make room.*committed before is kept"):
        fill()
    n = len(store.queued())
    db.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert kept.status == "queued"
    assert store.enqueue(SHORT) and len(store.queued()) == n + 1


@pytest.mark.slow
def test_the_page_says_it_and_shows_what_is_stored(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.session import backend
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("NORMVIZ_HOME", str(disk / "data"))
    (disk / "data").mkdir()
    monkeypatch.setattr(SupervisorClient, "ensure", lambda self: None)
    backend.forget()
    at = AppTest.from_file(MAIN, default_timeout=60).run()
    assert not at.exception and not at.warning
    # Else the log has room that it holds already.
    Store(disk / "data").db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    SmallDisk(disk, lambda: 0).fill()
    for _ in range(5):
        at.button(key="train").click().run()
        assert not at.exception
        if at.error:
            break
    assert "make room and try again" in at.error[0].value
    assert any("is full" in warning.value for warning in at.warning)
    another = AppTest.from_file(MAIN, default_timeout=60).run()
    assert [m.value for m in another.markdown if "learned" in m.value]
    SmallDisk(disk, lambda: 0).empty()
    at.button(key="train").click().run()
    assert not at.exception and not at.error and not at.warning
    backend.forget()


def test_room_is_held_back_once_and_given_up_once(tmp_path: Path) -> None:
    hold(tmp_path)
    hold(tmp_path)
    assert (tmp_path / "held-back.room").stat().st_size == BYTES
    assert give_up(tmp_path) and not give_up(tmp_path)
