"""The queue: visitors take turns, whoever comes and however much one asks for."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from hosted_kit import turn_on
from hypothesis import given
from hypothesis import strategies as st
from queue_kit import simulate

from normviz import RunConfig
from normviz.config import estimated_seconds
from normviz.policy import Refused
from normviz.runs.store import Store
from normviz.runs.store import queue as store_queue
from normviz.runs.store.queue import LATELY, NEXT, Waiting, in_turn, until_free
from normviz.runs.store.queue import enqueue as queue

CONFIG = RunConfig(depth=3)


def ask(store: Store, *visitors: str | None) -> list[int]:
    return [store.enqueue(CONFIG, visitor=visitor) for visitor in visitors]


def hand_out(store: Store) -> str | None:
    """The next run goes to a worker that begins at once; returns its visitor."""
    run = store.queued()[0]
    store.handed(run)
    record = store.run(run)
    assert record is not None
    store.end(run, "stopped")
    return record.visitor


def test_visitors_take_turns_and_each_one_s_runs_keep_their_order(store: Store) -> None:
    a1, a2, a3, b1, c1, b2 = ask(store, "a", "a", "a", "b", "c", "b")
    assert store.queued() == [a1, b1, c1, a2, b2, a3]
    assert [hand_out(store) for _ in range(6)] == ["a", "b", "c", "a", "b", "a"]


def test_who_comes_later_goes_before_the_rest_of_an_earlier_visitor_s(store: Store) -> None:
    ask(store, *"aaaa")
    assert hand_out(store) == "a"
    ask(store, "b")
    assert [hand_out(store) for _ in range(3)] == ["b", "a", "a"]  # b has used no core yet


def queue_from(store: Store, address: str, *visitors: str, steps: int = 200) -> list[int]:
    """A run of each visitor, all from one network address."""
    configs = [CONFIG.replace(steps=steps, data_seed=n) for n in range(len(visitors))]
    return [
        queue(store, [config], visitor, address=address)[0]
        for config, visitor in zip(configs, visitors, strict=True)
    ]


def test_new_cookies_of_an_address_share_its_part_of_the_cores(store: Store) -> None:
    queue_from(store, "1", *"abcdef")
    assert hand_out(store) == "a"
    queue_from(store, "2", *"xyz")
    assert [hand_out(store) for _ in range(8)] == ["x", "b", "y", "c", "z", "d", "e", "f"]


def test_an_address_whose_runs_are_long_gets_fewer_of_them(store: Store) -> None:
    queue_from(store, "1", *"abc", steps=600)
    queue_from(store, "2", *"uvwxyz")
    assert [hand_out(store) for _ in range(6)] == ["u", "v", "a", "w", "x", "y"]


def test_what_an_address_used_is_forgotten_after_a_while(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_from(store, "1", "a", steps=2000)
    assert hand_out(store) == "a"
    queue_from(store, "1", "b")
    queue_from(store, "2", "x", steps=600)
    assert store.queued() == [3, 2]
    later = time.time() + LATELY + 1
    monkeypatch.setattr(store_queue, "clock", lambda: later)
    assert store.queued() == [2, 3]
    monkeypatch.setattr(store_queue, "clock", lambda: 0.0)  # a clock that was set back
    assert store.queued() == [2, 3]


def test_an_address_holds_a_quarter_of_the_queue_and_others_find_places(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, store)
    seeds = count()

    def takes(address: str) -> bool:
        """Whether the server takes a duel of a new cookie from this address."""
        lanes = [CONFIG.replace(data_seed=next(seeds)) for _ in range(2)]
        try:
            queue(store, lanes, f"cookie {next(seeds)}", address=address)
        except Refused as why:
            refusals.append(str(why))
            return False
        return True

    refusals: list[str] = []
    held = Counter(address for address in "1" * 100 if takes(address))
    assert held == {"1": 12}  # duels: 24 of 100 runs
    assert refusals[0].startswith("24 runs from your network address wait already and 2 more were")
    for _ in range(12):
        held.update(filter(takes, map(str, range(2, 21))))
    assert 2 * held.total() < 90 and set(held) == set(map(str, range(1, 21)))
    assert takes("an honest one")


@pytest.mark.slow
@pytest.mark.parametrize(("addresses", "longest", "most"), [(1, True, 60), (20, False, 300)])
def test_an_honest_visitor_trains_soon_while_new_cookies_ask(
    addresses: int, longest: bool, most: float
) -> None:
    """Ten cookies a second, from one address and from 20, for three minutes."""
    found = simulate(addresses, 3, longest)
    assert len(found.visitors) == 3 and all(one.began for one in found.visitors)
    assert max(found.waits) <= most and not sum(one.refused for one in found.visitors)


def test_the_lanes_of_a_duel_go_in_one_turn(store: Store) -> None:
    """They train side by side, though others wait; of four lanes two at a time do."""
    lanes = [CONFIG.replace(init_seed=seed) for seed in range(5)]
    a = queue(store, lanes, "a")
    b = queue(store, lanes[:2], "b")
    c = queue(store, lanes[:2], "c")
    order = [*a[:2], *b, *c, *a[2:4], a[4]]
    assert store.queued() == order
    for run in order:
        assert store.queued()[0] == run
        store.handed(run)
        store.end(run, "stopped")


def test_a_lane_whose_other_one_was_stopped_has_a_turn_of_its_own(store: Store) -> None:
    lanes = [CONFIG.replace(init_seed=seed) for seed in range(4)]
    a, b = queue(store, lanes, "a"), queue(store, lanes[:1], "b")
    store.end(a[0], "stopped")
    assert store.queued() == [a[1], *b, *a[2:]]


def test_runs_of_nobody_on_a_page_take_turns_as_one_visitor(store: Store) -> None:
    ask(store, None, None, "a")
    assert [hand_out(store) for _ in range(3)] == [None, "a", None]


def test_a_run_that_was_handed_out_and_came_back_is_first(store: Store) -> None:
    """Its worker died before it began."""
    a1, a2, b1 = ask(store, "a", "a", "b")
    store.handed(a1)
    assert store.queued() == [a1, b1, a2]
    store.handed(a1)  # once more: that is no other turn
    assert store.queued() == [a1, b1, a2]


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "aa", "bb", "serve", "serve"]), max_size=60))
def test_nobody_waits_for_more_than_one_turn_of_each_other_visitor(events: list[str]) -> None:
    """Whatever comes meanwhile: the model of the queue in memory, as the store keeps it."""
    waiting: list[Waiting] = []
    served: dict[str, int] = {}
    passed: dict[str, Counter[str]] = {}  # of each who waits: what went before since then
    for number, event in enumerate([*events, *["serve"] * 2 * len(events)]):
        last = max(served.values(), default=0)
        if event != "serve":
            passed.setdefault(event[0], Counter())
            waiting.append(Waiting(2 * number, event[0], last))
            if event[1:]:
                waiting.append(Waiting(2 * number + 1, event[0], last, beside=2 * number))
            continue
        if not waiting:
            continue
        order = in_turn(waiting, served)
        assert sorted(order) == sorted(one.run for one in waiting)
        one = next(one for one in waiting if one.run == order[0])
        assert one.run == min(w.run for w in waiting if w.visitor == one.visitor)
        waiting.remove(one)
        if one.turn == NEXT:
            assert in_turn(waiting, served) == order[1:]
            continue
        waiting = [replace(w, turn=NEXT) if w.beside == one.run else w for w in waiting]
        served[one.visitor] = last + 1
        for visitor, counted in passed.items():
            counted[one.visitor] += visitor != one.visitor
            assert counted[one.visitor] <= 1, visitor
        assert in_turn(waiting, served) == order[1:]  # what was said of the others stays true
        passed[one.visitor] = Counter()
        passed = {v: c for v, c in passed.items() if any(w.visitor == v for w in waiting)}
    assert not waiting


def test_a_run_begins_when_one_of_two_slots_is_free() -> None:
    """The last one: more train than there are slots, since one was paused and went on."""
    for busy, before, seconds in (
        ([], [], 0), ([5], [], 0), ([5, 3], [], 3), ([5, 3], [4], 5), ([5, 3], [4, 4], 7),
        ([], [1, 1, 1, 1], 2), ([9, 8, 7], [], 8),
    ):  # fmt: skip
        assert until_free(busy, before, 2) == seconds


def test_a_place_has_a_number_and_a_time(store: Store) -> None:
    store.announce(1, ready=True, slots=2)
    runs = ask(store, "a", "a", "a", "b")
    places = {run: store.place(run) for run in runs}
    one = estimated_seconds(CONFIG)
    said = {run: (place.number, place.seconds) for run, place in places.items() if place}
    assert said == {
        runs[0]: (1, 0.0), runs[3]: (2, 0.0), runs[1]: (3, one), runs[2]: (4, one)
    }  # fmt: skip
    store.end(runs[0], "stopped")
    assert store.place(runs[0]) is None
