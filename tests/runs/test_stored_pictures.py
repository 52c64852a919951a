"""Pictures of duels in the store: each asked for and kept once, few that wait, and none without its runs."""

from __future__ import annotations

from shelf_kit import SMALL, fill, kept

from normviz.runs.store import Store, pictures, retention
from normviz.runs.store.pictures import Picture

PICTURE = Picture({"loss": "<svg>é</svg>"}, {"loss": "<svg/>"}, b"\x89PNG")


def waits(store: Store) -> list[list[int]]:
    """The runs of all pictures that wait, in the order in which they are drawn."""
    after, runs = 0, list[list[int]]()
    while picture := pictures.waiting(store, after):
        after, named = picture
        runs.append([int(run) for run in named.split(",")])
    return runs


def test_a_picture_is_asked_for_once_and_kept(store: Store) -> None:
    for _ in range(2):
        pictures.ask(store, [2, 1], "ann")
    assert waits(store) == [[2, 1]] and pictures.of(store, [2, 1]) is None
    pictures.keep(store, [2, 1], PICTURE)
    pictures.ask(store, [2, 1], "bob")
    assert waits(store) == [] and pictures.of(store, [2, 1]) == PICTURE
    assert pictures.of(store, [1, 2]) is None  # lanes in another order


def test_a_visitor_waits_for_one_picture_at_a_time(store: Store) -> None:
    pictures.ask(store, [1], "ann")
    pictures.keep(store, [1], PICTURE)
    for runs, visitor in (([2], "ann"), ([3], "bob"), ([4], "ann")):
        pictures.ask(store, runs, visitor)
    assert waits(store) == [[3], [4]]
    pictures.keep(store, [2], PICTURE)  # drawn too late
    assert pictures.of(store, [2]) is None and pictures.of(store, [1]) == PICTURE


def test_the_oldest_pictures_go_except_those_that_ship(store: Store) -> None:
    pictures.ask(store, [1], None)
    pictures.keep(store, [1], PICTURE)
    for n in range(2, pictures.KEPT + 4):
        pictures.ask(store, [n], f"visitor {n}")
    assert waits(store) == [[n] for n in range(4, pictures.KEPT + 4)]
    assert pictures.of(store, [1]) == PICTURE


def test_a_picture_goes_with_any_of_its_runs(store: Store) -> None:
    first, *_, last = runs = fill(store)
    for duel in ([first, last], [last], runs[2:4], [10 * first]):
        pictures.ask(store, duel, str(duel))
    assert store.delete(last) is None
    assert waits(store) == [runs[2:4], [10 * first]]
    assert first in list(retention.drop(store, 1))
    assert waits(store) == [[10 * first]]


def test_a_full_disk_keeps_no_page_from_being_shown(store: Store) -> None:
    kept(store, SMALL)
    db = store.db.connection
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    for n in range(1, 1000):
        pictures.ask(store, [n] * 100, f"visitor {n}")
    assert len(waits(store)) < pictures.KEPT
