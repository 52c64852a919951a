"""A damaged store, or one of another schema: moved aside, kept, said; and stores that two servers open
at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from backend_kit import SHORT
from crossing_kit import case
from faults_kit import DAMAGES, PAGE, checkpoint, overwritten
from filelock import FileLock
from page_kit import MAIN, Open, at_page, checked, chips
from streamlit.testing.v1 import AppTest

from normviz import RunConfig, collect, train
from normviz.execution.client import DAMAGED
from normviz.runs.store import Store, StoreDamaged, StoreUnreadable
from normviz.runs.store.repair import damage, opened
from normviz.runs.store.schema import VERSION
from normviz.training.events import Step

pytestmark = pytest.mark.slow

OPEN = "from normviz.runs.store.repair import opened; import sys; print(opened()[1] or ''); sys.stdin.read()"


def filled(folder: Path) -> tuple[Store, int]:
    """A store with a run of 400 steps in its file, and some more in its log."""
    store = Store(folder)
    run = store.enqueue(SHORT.replace(steps=500))
    store.append(run, [Step(i, 1.0, 0.1, 1.0, None) for i in range(400)])
    checkpoint(store)
    return store, run


def closed(folder: Path) -> Path:
    """The file of such a store that nobody has open."""
    store, _ = filled(folder)
    store.db.connection.close()
    return store.db.path


def aside(folder: Path) -> list[Path]:
    return sorted(folder.glob("normviz-aside-*.sqlite"))


def test_a_damaged_file_is_kept_aside_and_a_fresh_one_begun(tmp_path: Path) -> None:
    for name, harm in DAMAGES.items():
        with case(name):
            folder = tmp_path / name
            folder.mkdir()
            path = closed(folder)
            harm(path)
            content = path.read_bytes()
            store, said = opened(folder)
            (kept,) = aside(folder)
            assert said is not None and str(kept) in said and "was damaged" in said
            assert "\n" not in said
            assert kept.read_bytes() == content
            assert time.strftime("%Y-") in kept.name
            assert store.enqueue(SHORT) > 10**6
            assert opened(folder)[1] is None  # once


def test_the_runs_that_can_be_read_in_a_damaged_file_are_brought_over(tmp_path: Path) -> None:
    """Each whole, or up to its first step that can't be read; those that ship come from the release."""
    store = Store(tmp_path)
    events = [Step(i, 1.0 / (i + 1), 0.1, 1.0, None) for i in range(300)]
    ids = [store.enqueue(SHORT.replace(steps=300, init_seed=i)) for i in range(40)]
    for run in ids:
        store.append(run, events)
        store.end(run, "finished")
    ship = store.keep_all([collect(train(SHORT.replace(steps=2)))], "shipped")[0]
    waits = store.enqueue(SHORT)
    before = {run: store.steps(store.run(run)) for run in ids}
    path = checkpoint(store)
    store.db.connection.close()
    with path.open("r+b") as file:  # a piece in the middle, as by a disk that goes bad
        size = file.seek(0, os.SEEK_END)
        file.seek(size // 2 // PAGE * PAGE)
        file.write(b"\xa5" * 4 * PAGE)
    again, said = opened(tmp_path)
    assert said is not None and damage(again.db.path, thorough=True) is None
    runs = {run: found for run in ids if (found := again.run(run)) is not None}
    parts = [run for run, found in runs.items() if found.status == "failed"]
    assert len(runs) > 35 and 0 < len(parts) < 10, "a file of which little is damaged"
    assert f" with {len(runs) + 1} runs that could be read, {len(parts)} of them in part" in said
    for run, found in runs.items():
        losses = again.steps(found).loss.tolist()
        assert losses == before[run].loss.tolist()[: len(losses)]
        assert (found.status, len(losses)) == ("finished", 300) or (
            run in parts and f"only the first {len(losses)} steps" in str(found.message)
        )
    assert again.run(waits) is not None and again.run(waits).status == "queued"
    assert again.run(ship) is None and again.enqueue(SHORT) > 10**6


def test_the_numbers_of_runs_in_a_damaged_store_are_not_given_again(tmp_path: Path) -> None:
    """A page that is open from before may ask to delete one of them."""
    numbers: list[int] = []
    for _ in range(3):
        store = opened(tmp_path)[0]
        numbers += [store.enqueue(SHORT) for _ in range(2)]
        store.db.connection.close()
        overwritten(store.db.path)
    assert numbers == sorted(set(numbers)) and numbers[:2] == [1, 2]
    assert numbers[2] > 10**6 and numbers[4] > numbers[3] + 1
    assert len(aside(tmp_path)) == 2  # of one second, both kept


@pytest.mark.parametrize("harm", [lambda b: b[: len(b) // 2], lambda b: b"\xa5" * len(b)])
def test_a_harmed_log_costs_nothing_that_the_file_holds(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    store, run = filled(tmp_path)
    store.append(run, [Step(i, 1.0, 0.1, 1.0, None) for i in range(400, 450)])
    path = store.db.path
    log, content = Path(f"{path}-wal"), Path(f"{path}-wal").read_bytes()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / path.name).write_bytes(path.read_bytes())
    (copy / log.name).write_bytes(harm(content))  # as a crash leaves it
    again, said = opened(copy)
    found = again.run(run)
    assert said is None and found is not None
    steps = again.steps(found).step.tolist()
    assert len(steps) >= 400 and steps == list(range(len(steps)))
    assert damage(again.db.path, thorough=True) is None


def test_a_sound_store_is_left_as_it_is(tmp_path: Path) -> None:
    store, run = filled(tmp_path)
    again, said = opened(tmp_path)
    assert said is None and vars(again.run(run)) == vars(store.run(run))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "normviz.sqlite").touch()
    assert opened(tmp_path / "empty")[1] is None


def other_schema(folder: Path, schema: int) -> Path:
    """The file of a store with a run of 401 steps, the last one in its log; nobody has it open."""
    store, run = filled(folder)
    store.append(run, [Step(400, 1.0, 0.1, 1.0, None)])
    store.db.connection.execute(f"PRAGMA user_version = {schema}")
    store.db.connection.close()
    return store.db.path


@pytest.mark.parametrize("schema", [VERSION + 98, -1], ids=["newer", "older"])
def test_a_store_of_another_schema_is_set_aside_with_all_its_rows(
    tmp_path: Path, schema: int
) -> None:
    path = other_schema(tmp_path, schema)
    with closing(sqlite3.connect(path)) as db:
        before = list(db.iterdump())
    store, said = opened(tmp_path)
    (kept,) = aside(tmp_path)
    assert said is not None and str(kept) in said and f"had another schema ({schema}, " in said
    with closing(sqlite3.connect(kept)) as db:
        assert list(db.iterdump()) == before
        assert db.execute("PRAGMA user_version").fetchone() == (schema,)
        assert db.execute("SELECT COUNT(*) FROM steps").fetchone() == (401,)
    assert store.run(1) is None and store.enqueue(SHORT) > 10**6
    assert opened(tmp_path)[1] is None  # once


READER = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM runs').fetchall()"


def test_a_store_of_another_schema_stays_while_a_process_has_it_open(tmp_path: Path) -> None:
    """As another release beside this one, which shows pages and trains nothing."""
    path = other_schema(tmp_path, 99)
    waits = f"{READER}; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waits, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline()
        with pytest.raises(StoreDamaged, match=r"had another schema .* still uses it: end that"):
            opened(tmp_path)
        assert not aside(tmp_path)
        other.communicate(b"")
    assert opened(tmp_path)[1] and len(aside(tmp_path)) == 1


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN], env={**os.environ, "NORMVIZ_HOME": str(folder)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("harm", [None, overwritten], ids=["fresh", "damaged"])
def test_servers_that_start_at_once_share_one_store(
    tmp_path: Path, harm: Callable[[Path], None] | None
) -> None:
    if harm:
        harm(closed(tmp_path))
    servers = [start(tmp_path) for _ in range(3)]
    said = [server.communicate("")[0].strip() for server in servers]
    assert [server.returncode for server in servers] == [0] * 3
    assert len(list(filter(None, said))) == len(aside(tmp_path)) == (1 if harm else 0)
    assert (Store(tmp_path).enqueue(SHORT) == 1) == (harm is None)


def test_a_damaged_store_is_not_moved_from_under_another_server(tmp_path: Path) -> None:
    overwritten(closed(tmp_path))
    with FileLock(tmp_path / "supervisor.lock"):  # its supervisor's
        with pytest.raises(StoreDamaged, match="another server or its supervisor still uses it"):
            opened(tmp_path)
        assert not aside(tmp_path)
    assert opened(tmp_path)[1]


def test_a_supervisor_leaves_a_damaged_store_and_says_so(tmp_path: Path) -> None:
    overwritten(closed(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-m", "normviz.execution.supervise"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "NORMVIZ_HOME": str(tmp_path)}, text=True,
    ) as supervisor:  # fmt: skip
        assert supervisor.wait(60) == DAMAGED
        assert supervisor.stderr is not None
        said = supervisor.stderr.read()
    assert "is damaged" in said and "Traceback" not in said


# On the page


def test_the_page_and_the_terminal_say_where_the_store_lies_that_was_set_aside(
    folder: Path, page: Open, capfd: pytest.CaptureFixture[str]
) -> None:
    other_schema(folder, 99)
    for _ in range(2):
        at = page()
        (kept,) = aside(folder)
        assert kept.name in at.warning[0].value.replace("\\", "")
        assert "learned" in chips(at)[0]  # what ships is in the fresh one
    assert capfd.readouterr().err.count(str(kept)) == 1


def test_damage_that_comes_later_is_a_sentence_and_the_page_goes_on(folder: Path) -> None:
    at = AppTest.from_file(MAIN, default_timeout=120)
    checked(at.run())
    overwritten(checkpoint(Store(folder)))
    other = at_page("runs")
    checked(other.run())
    checked(other.run())
    assert [w for w in other.warning if "was damaged" in w.value], [*other.error]
    assert len(aside(folder)) == 1
    checked(at.button(key="train").click().run())  # an old session works on the fresh store
    assert "in the queue" in chips(at)[0]


def test_a_damaged_row_is_left_out_and_damaged_steps_are_named(folder: Path, page: Open) -> None:
    store = Store(folder)
    ids = [store.enqueue(RunConfig(depth=3, init_seed=i)) for i in range(5)]
    for run in ids:
        store.append(run, [Step(0, 1.0, 0.1, 1.0, None)])
        store.end(run, "stopped")
    for sql in (
        f"UPDATE runs SET config = '{{' WHERE id = {ids[0]}",
        f"UPDATE runs SET config = '[1]' WHERE id = {ids[1]}",
        f"UPDATE runs SET status = '<img src=x>' WHERE id = {ids[2]}",
        f"UPDATE runs SET created = 'yesterday' WHERE id = {ids[3]}",
        f"UPDATE steps SET layers = x'00ff' WHERE run = {ids[4]}",
        f"UPDATE steps SET loss = 'much' WHERE run = {ids[4]}",
    ):
        store.db.connection.execute(sql)
    assert [store.run(run) is None for run in ids] == [True] * 4 + [False]
    with pytest.raises(
        StoreUnreadable, match=f"run {ids[4]} can't be read, they are damaged: delete"
    ):
        store.steps(store.run(ids[4]))
    with pytest.raises(StoreUnreadable):
        store.losses(ids[4])
    from normviz.runs.listing import RunList
    from normviz.runs.store import Query

    found = RunList(store).page(Query(), 10)
    assert sorted(found.foreign) == ids
    assert not {row.run.id for row in found.rows} & set(ids)
    at = page("v=1&depth=3&init_seed=4&lanes=1")
    assert any("delete the run" in error.value for error in at.error)
    assert store.delete(ids[0]) is None and store.delete(ids[4]) is None
