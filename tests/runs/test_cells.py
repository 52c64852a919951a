"""Cells of maps and claims in the queue, without processes: order, limits, and what others see of them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hosted_kit import turn_on

from normviz import RunConfig
from normviz.config import estimated_seconds
from normviz.cores import cores
from normviz.execution.cell import measure
from normviz.policy import Refused
from normviz.runs.store import Query, Store, cells
from normviz.studies.claims import CLAIMS
from normviz.studies.claims.drive import keys, missing_here, result_here

CONFIGS = [RunConfig(depth=2, width=16, heads=2, steps=3, init_seed=n) for n in range(3)]
KEYS = [config.key for config in CONFIGS]


def begun(store: Store) -> int:
    """A worker takes the next cell."""
    run = store.queued(cells=True)[0]
    store.handed(run)
    cells.began(store, run)
    return run


def test_they_wait_beside_the_runs_once_and_take_turns(store: Store) -> None:
    cells.ask(store, CONFIGS, "map", "a", "one")
    cells.ask(store, [CONFIGS[0].replace(depth=3)], "map", "b", "two")
    run = store.enqueue(CONFIGS[0], visitor="c")
    assert store.queued() == [run]
    (place,) = [store.place(run)]
    assert place is not None and place.number == 1
    first, second, third, other = sorted(store.queued(cells=True))
    assert store.queued(cells=True) == [first, other, second, third]
    cells.ask(store, CONFIGS, "map", "b")  # they wait already
    assert len(store.queued(cells=True)) == 4
    opened = cells.opened(store, KEYS, "a")
    assert opened is not None and opened.may_stop and opened.before == 0
    assert opened.seconds == pytest.approx(sum(map(estimated_seconds, CONFIGS)) / cores())
    theirs = cells.opened(store, [CONFIGS[0].replace(depth=3).key], "a")
    assert theirs is not None and theirs.before == 1


def test_nobody_sees_one_before_its_result(store: Store) -> None:
    cells.ask(store, CONFIGS[:1], "map", "a")
    assert store.latest(KEYS[0]) is None and store.listed(Query(), 9).total == 0
    run = begun(store)
    opened = cells.opened(store, KEYS, "a")
    assert opened is not None and opened.running == {KEYS[0]} and opened.runs == {KEYS[0]: run}
    cells.keep(store, run, measure(CONFIGS[0]))
    latest = store.latest(KEYS[0])
    assert latest is not None and (latest.id, latest.status, latest.is_coarse) == (
        run,
        "finished",
        True,
    )
    assert store.listed(Query(), 9).total == 1 and cells.opened(store, KEYS, "a") is None
    assert len(store.recording(latest).steps) == 3


def test_a_stop_ends_those_of_who_asked_and_leaves_nothing_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, store)
    cells.ask(store, CONFIGS[:2], "map", "a")
    cells.ask(store, CONFIGS[2:], "map", "b")
    taken = begun(store)
    cells.stop(store, KEYS, "a")
    opened = cells.opened(store, KEYS, "b")
    assert opened is not None and opened.may_stop and list(store.stops()) == [taken]
    assert opened.runs.keys() == {KEYS[0], KEYS[2]}
    store.end(taken, "stopped")
    cells.keep(store, taken, measure(CONFIGS[0]))  # its process was not dead yet
    assert store.run(taken) is None and store.latest(KEYS[0]) is None
    cells.stop(store, KEYS, "b")
    assert cells.opened(store, KEYS, "a") is None and store.queued(cells=True) == []


def test_one_that_failed_says_why_until_it_is_asked_for_again(store: Store) -> None:
    cells.ask(store, CONFIGS[:1], "map", "a")
    store.end(begun(store), "failed", message="no memory")
    assert cells.failures(store, KEYS) == ["no memory"]
    cells.ask(store, CONFIGS[:1], "map", "a")
    assert cells.failures(store, KEYS) == [] and len(store.queued(cells=True)) == 1


def test_they_wait_again_when_a_supervisor_begins(store: Store) -> None:
    cells.ask(store, CONFIGS[:2], "map", "a")
    taken = begun(store)
    handed = store.queued(cells=True)[0]
    store.handed(handed)  # its worker has not begun
    store.close_open()
    assert store.queued(cells=True) == [taken, handed]


def test_a_page_sees_the_cells_that_a_terminal_trains_and_leaves_them_to_it(store: Store) -> None:
    cells.ask(store, CONFIGS[:1], "map", "a")
    rows = cells.take(store, CONFIGS)  # that one too: it does not train yet
    cells.ask(store, CONFIGS, "map", "a")
    assert list(rows) == KEYS and store.queued(cells=True) == []
    cells.began(store, rows[KEYS[1]])
    store.close_open()  # a supervisor begins
    cells.stop(store, KEYS, "a")
    opened = cells.opened(store, KEYS, "a")
    assert opened is not None and not opened.may_stop
    assert opened.runs == rows and opened.running == {KEYS[1]}
    store.end(rows[KEYS[0]], "failed", message="no memory")
    cells.leave(store, rows.values())
    assert cells.opened(store, KEYS, "a") is None and cells.failures(store, KEYS) == ["no memory"]


def test_what_a_killed_terminal_left_does_not_wait_for_ever(store: Store) -> None:
    cells.take(store, CONFIGS)
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    store.db.connection.execute("UPDATE runs SET pid = ?", (killed.pid,))
    assert cells.opened(store, KEYS, "a") is None and store.queued(cells=True) == []
    cells.ask(store, CONFIGS[:1], "map", "a")
    assert store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0] == 1
    assert len(store.queued(cells=True)) == 1
    cells.take(store, CONFIGS)
    store.db.connection.execute("UPDATE runs SET pid = ?", (killed.pid,))
    store.close_open()
    assert store.db.connection.execute("SELECT COUNT(*) FROM runs").fetchone()[0] == 0


def test_a_shared_server_gives_visitors_addresses_and_all_so_many_minutes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = estimated_seconds(CONFIGS[0]) / 60
    limits = {"visitor_minutes": 1.5, "address_minutes": 2.5, "all_minutes": 3.5}
    turn_on(monkeypatch, store, **{name: n * each for name, n in limits.items()})

    def ask(n: int, visitor: str, address: str = "") -> None:
        cells.ask(store, [CONFIGS[0].replace(data_seed=n)], "map", visitor, address)

    ask(1, "a", "one")
    with pytest.raises(Refused, match="claims that you asked for and that have not ended"):
        ask(2, "a", "two")
    ask(2, "b", "one")
    with pytest.raises(Refused, match="that your network address asked for"):
        ask(3, "c", "one")
    ask(3, "c")
    with pytest.raises(Refused, match="that all visitors asked for"):
        ask(4, "d", "two")
    assert len(store.queued(cells=True)) == 3
    with pytest.raises(Refused, match="depth is 97"):
        cells.ask(store, [CONFIGS[0].replace(depth=97)], "map", "e")


def test_readings_of_a_lab_are_a_claim_s_result_and_no_runs(store: Store) -> None:
    claim = next(claim for claim in CLAIMS if claim.lab == "norms")
    missing = missing_here(store, claim)
    assert len(missing) == len(claim.cells()) and result_here(store, claim) is None
    cells.ask(store, [cell.config for cell in missing], "claim", "a", lab=claim.lab)
    names = ("first", "second")
    while store.queued(cells=True):
        cells.keep_reading(
            store, begun(store), dict(zip(names, (1.5, float("nan")), strict=True)), 2.0
        )
    assert missing_here(store, claim) == [] and cells.opened(store, keys(claim), "a") is None
    run = cells.reading(store, claim.lab, claim.cells()[0].config)
    assert (
        run is not None
        and run.reading["first"] == 1.5
        and run.reading["second"] != run.reading["second"]
    )
    assert run.seconds == pytest.approx(2.0)
    assert store.listed(Query(), 9).total == 0 and store.latest(claim.cells()[0].key) is None
