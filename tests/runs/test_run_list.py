"""The shelf: which stored runs are found, what is said of them, and what may be deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from crossing_kit import case
from hypothesis import given
from hypothesis import strategies as st
from shelf_kit import SMALL, kept
from test_store import dead_pid

from normviz import RunConfig
from normviz.config import ENGINE, seeds_of
from normviz.runs import Run
from normviz.runs.listing import RunList, ago, changed, diff, seconds
from normviz.runs.search import search
from normviz.runs.shipped import adopt
from normviz.runs.store import Condition, Query, Store

ALL = Query()


def found(store: Store, words: str = "", wanted: Query = ALL) -> list[int]:
    clauses = (*wanted.clauses, *search(words).clauses)
    return [run.id for run in store.listed(Query(clauses, wanted.only, wanted.trained), 99).runs]


def the(store: Store, number: int) -> Run:
    run = store.run(number)
    assert run is not None
    return run


def rows_of(store: Store, run: int) -> int:
    """Rows of every table that belong to a run."""
    tables = (("runs", "id"), ("steps", "run"), ("controls", "run"))
    count = "SELECT COUNT(*) FROM {} WHERE {} = ?"
    db = store.db.connection
    return sum(db.execute(count.format(*table), (run,)).fetchone()[0] for table in tables)


# Lists


def test_the_newest_come_first_a_page_at_a_time(store: Store) -> None:
    runs = [kept(store, steps=1) for _ in range(7)]
    first, last = store.listed(ALL, 5), store.listed(ALL, 5, offset=5)
    assert [run.id for run in (*first.runs, *last.runs)] == runs[::-1]
    assert (first.total, last.total, len(last.runs)) == (7, 7, 2)
    assert store.listed(ALL, 5, offset=7).runs == ()


FOUND = [
        ("", "abcd"),
        ("peri-ln", "b"), ("PERI", "b"), ("rmsnorm", "c"), ("copy", "d"),
        ("depth 3", "acd"), ("depth=5", "b"), ("learning rate 0.01", "c"), ("lr=1e-2", "c"),
        ("lr", "c"), ("clip 1", "d"), ("clip off", "abc"), ("clip", "d"), ("norm rmsnorm", "c"),
        ("diverged", "d"), ("stopped", "c"), ("fini", "ab"), ("pre depth 3 lr 0.01", "c"),
        ("peri copy", ""), ("shipped", ""), ("init seed 0", "abcd"), ("init seed", ""),
        ("zloss", ""), ("zloss 0", "abcd"), ("loops 1", "abcd"),
        ("family decoder", "abcd"), ("mask causal", "abcd"),
]  # fmt: skip


def test_words_find_runs(store: Store) -> None:
    named = {
        kept(store): "a",
        kept(store, SMALL.replace(scheme="peri", depth=5)): "b",
        kept(store, SMALL.replace(norm="rmsnorm", lr=0.01), "stopped"): "c",
        kept(store, SMALL.replace(task="copy", clip=1.0), "diverged"): "d",
    }
    for words, expected in FOUND:
        with case(words):
            assert "".join(sorted(named[run] for run in found(store, words))) == expected


def test_a_run_is_found_by_its_number_and_its_key(store: Store) -> None:
    kept(store)
    other = kept(store, SMALL.replace(depth=4))
    for words in (f"#{other}", str(other), the(store, other).key, the(store, other).key[:9]):
        assert found(store, words) == [other]


def test_words_that_name_nothing_find_nothing(store: Store) -> None:
    kept(store)
    for words in ("%_'\"<script>", "%", "'; DROP TABLE runs; --", "depthless"):
        assert found(store, words) == []
        assert search(words).unknown
        assert found(store) != []


@given(st.text(max_size=60))
def test_a_search_never_fails(words: str) -> None:
    for clause in search(words).clauses:
        assert all(
            has.name in (*RunConfig.model_fields, "id", "key", "status", "origin") for has in clause
        )


def test_mine_and_those_of_no_steps(store: Store) -> None:
    trained, measured = kept(store), kept(store, SMALL.replace(steps=0), steps=1)
    assert found(store) == [measured, trained]
    store.end(passed := store.enqueue(SMALL), "stopped")  # before it began
    assert found(store) == [passed, measured, trained]
    assert found(store, wanted=Query(trained=True)) == [trained]
    assert found(store, wanted=Query(only=frozenset({trained, 99}))) == [trained]
    assert found(store, wanted=Query(only=frozenset())) == []


def test_another_name_than_a_setting_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="is no setting of a run"):
        store.listed(Query(((Condition("config) OR 1 --", (1,)),),)), 5)


@pytest.mark.parametrize(
    "change",
    [
        "config = json_set(config, '$.scheme', 'gone')",
        f"key = 'e{ENGINE - 1}' || substr(key, 3)",
        f"key = 'e{ENGINE + 1}' || substr(key, 3)",
        "engine = 'gone'",
    ],
)
def test_a_run_of_another_release_is_counted_and_hides_no_other(store: Store, change: str) -> None:
    ours, theirs = kept(store), kept(store)
    store.db.connection.execute(f"UPDATE runs SET {change} WHERE id = ?", (theirs,))
    assert (shown := store.latest(SMALL.key)) is not None and shown.id == ours
    listed = store.listed(ALL, 5)
    assert ([run.id for run in listed.runs], listed.foreign, listed.total) == ([ours], (theirs,), 2)
    assert store.delete(theirs) is None  # and it can be deleted all the same


# What is said


def test_what_came_of_a_run(store: Store) -> None:
    runs = {status: kept(store, status=status) for status in ("finished", "diverged", "failed")}
    said = {row.run.status: row for row in RunList(store).page(ALL, 9).rows}
    assert said["finished"].words == "learned" and said["finished"].loss == "1.50"
    assert said["diverged"].words == "diverged at step 39, first in layer 2"
    assert said["failed"].words == "failed after 40 steps"
    assert runs.keys() == said.keys()


def test_an_open_run_is_looked_at_anew_and_a_closed_one_is_not(store: Store) -> None:
    shelf, run = RunList(store), kept(store, status="running", steps=5)
    assert shelf.row(the(store, run)).steps == 5
    store.end(run, "stopped")
    assert shelf.row(the(store, run)).words == "stopped after 5 steps"
    store.db.connection.execute("DELETE FROM steps")
    assert shelf.row(the(store, run)).steps == 5


def test_settings_in_words() -> None:
    other = RunConfig(scheme="post", depth=24, lr=0.01, init_seed=3)
    assert changed(other) == "depth 24, learning rate 0.01"
    assert changed(RunConfig(scheme="post")) == ""
    assert (seeds_of(RunConfig()), seeds_of(other)) == ("seed 0", "init seed 3, data seed 0")
    table = diff([RunConfig(), other, RunConfig()])
    assert table["placement"] == ["Pre-LN", "Post-LN", "Pre-LN"]
    assert list(table) == ["placement", "depth", "learning rate", "init seed"]
    assert diff([other, other]) == {}


def test_how_long_ago() -> None:
    for past, words in ((-5, "just now"), (59, "just now"), (60, "1 min ago"), (7200, "2 h ago")):
        assert ago(1e9, 1e9 + past) == words


# Deletion


def test_a_deleted_run_is_gone_with_all_its_steps(store: Store) -> None:
    for status in ("finished", "diverged", "stopped", "failed"):
        run, other = kept(store, status=status), kept(store)
        store.control(run, "stop")
        assert store.delete(run) is None
        assert rows_of(store, run) == 0 and store.run(run) is None
        assert rows_of(store, other) == 41
        assert store.delete(run) == f"there is no run {run}"
        assert kept(store) > other  # numbers do not come again


def test_an_open_run_stays(store: Store) -> None:
    for status in ("queued", "running", "paused"):
        run = kept(store, status=status)
        assert store.delete(run) == f"run {run} is {status}: stop it first"
        assert store.run(run) is not None


def test_a_run_whose_process_is_gone_can_be_deleted(store: Store) -> None:
    run = kept(store, status="running")
    store.db.connection.execute("UPDATE runs SET pid = ? WHERE id = ?", (dead_pid(), run))
    assert store.delete(run) is None


def test_what_ships_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    adopt(store)
    for run in store.listed(ALL, 99).runs:
        assert store.delete(run.id) == f"run {run.id} ships with NormViz and stays"
        assert seconds(run) is None  # it was not trained here
