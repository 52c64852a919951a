"""The page of a shared server, without a browser: limits that stand there, refusals, whose runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from anatomy_kit import lanes
from hosted_kit import turn_on
from page_kit import Open, checked, chips, duel, runs
from shelf_kit import kept
from streamlit.testing.v1 import AppTest
from test_page_claims import claims
from test_page_maps import maps, small

from normviz import RunConfig
from normviz.home import shipped as shipped_folder
from normviz.links import encode
from normviz.runs import Run
from normviz.runs.frames import Frames
from normviz.runs.store import Store
from normviz.runs.store.queue import OTHERS
from normviz.studies.claims import CLAIMS

pytestmark = pytest.mark.slow

__all__ = ["claims", "maps"]
Become = Callable[[str], None]
FREE = RunConfig(depth=5, steps=77)


@pytest.fixture(autouse=True)
def become(monkeypatch: pytest.MonkeyPatch) -> Become:
    """A shared server, seen by visitor a, until the test becomes another one."""
    from normviz.app.session import visitor

    turn_on(monkeypatch)

    def another(who: str) -> None:
        monkeypatch.setattr(visitor, "me", lambda: who)
        monkeypatch.setattr(visitor, "session", lambda: f"page of {who}")

    another("a")
    return another


def found(store: Store, number: int | None) -> Run:
    assert number is not None
    run = store.run(number)
    assert run is not None
    return run


def asked(store: Store, run: int) -> list[str]:
    return [action for _, action, _ in store.controls(run, 0)]


def captions(at: AppTest) -> str:
    return "\n".join(caption.value for caption in at.caption)


def test_the_limits_stand_on_the_page_and_what_is_too_large_is_refused(
    page: Open, folder: Path
) -> None:
    """In a sentence, before and when it is asked for, and nothing is lost."""
    at, store = page(encode([FREE])), Store(folder)
    assert "This server is shared. Up to depth 96, width 128" in captions(at)
    assert "trains up to 96." in (at.select_slider(key="knob_depth").help or "")
    checked(at.button(key="train").click().run())
    (first,) = duel(at).runs
    checked(at.select_slider(key="knob_depth").set_value(128).run())
    assert not at.error
    checked(at.button(key="train").click().run())
    said = "Depth is 128, and this shared server trains up to 96."
    assert [error.value for error in at.error] == [said]
    assert duel(at).lanes[0].depth == 128 and duel(at).runs == (first,)
    assert asked(store, first) == []  # what trains goes on
    checked(at.select_slider(key="knob_depth").set_value(8).run())
    checked(at.button(key="train").click().run())
    assert not at.error and asked(store, first) == ["stop"]
    assert found(store, duel(at).runs[0]).visitor == "a"
    at = page(encode([FREE.replace(depth=200)]))
    assert any("Depth is 200, and this shared server trains up to 96." in i.value for i in at.info)


def test_a_link_to_a_bigger_stored_result_opens(page: Open, folder: Path) -> None:
    large = RunConfig(depth=200, steps=40)
    run = kept(Store(folder), large)
    at = page(encode([large]))
    assert runs(at) == [run] and not at.error
    assert "learned" in chips(at)[0]


def test_who_asks_for_the_same_joins_and_may_not_steer_it(
    page: Open, folder: Path, become: Become
) -> None:
    link, store = encode([FREE, FREE.replace(scheme="post")]), Store(folder)
    first = page(link)
    checked(first.button(key="train").click().run())
    theirs = duel(first).runs
    become("b")
    at = page(link)
    assert tuple(runs(at)) == theirs  # what trains is shown before anything is asked
    for key in ("pause", "stop", "step"):
        button = at.button(key=key)
        assert button.disabled and button.help == OTHERS, key
    checked(at.button(key="train").click().run())
    assert duel(at).runs == theirs and not duel(at).mine
    assert len(store.queued()) == 2
    checked(at.select_slider(key="knob_lr").set_value(0.01).run())
    assert not any(asked(store, run) for run in theirs if run)  # their rate stays
    assert [lane.lr for lane in duel(at).lanes] == [0.01, 0.01]
    checked(at.button(key="reset").click().run())
    assert not any(asked(store, run) for run in theirs if run)

    become("a")
    checked(first.run())
    assert not first.button(key="pause").disabled
    checked(first.button(key="pause").click().run())
    assert [asked(store, run) for run in theirs if run] == [["pause"], ["pause"]]


def test_a_run_that_others_joined_goes_on_when_its_visitor_leaves(
    page: Open, folder: Path, become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    from normviz.app.session import backend

    monkeypatch.setattr(backend, "_is_open", lambda page: True)
    link, store = encode([FREE]), Store(folder)
    first = page(link)
    checked(first.button(key="train").click().run())
    (run,) = duel(first).runs
    become("b")
    page(link)
    become("a")
    checked(first.button(key="reset").click().run())
    assert asked(store, run) == []


def test_a_visitor_asks_for_so_much_and_no_more(
    page: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, open_runs=4)
    at, store = page(), Store(folder)
    checked(at.button(key="repeat").click().run())
    assert "you have 0 open runs and ask for 8 more" in at.error[0].value.lower()
    assert store.queued() == [] and duel(at).seeds == 1


@pytest.mark.usefixtures("by_eager")
def test_place_and_time_are_said(page: Open, folder: Path, become: Become) -> None:
    store = Store(folder)
    store.announce(1, ready=True, slots=1)
    for seed in range(3):
        store.enqueue(RunConfig(init_seed=seed + 9), visitor="b")
    at = page(encode([RunConfig(init_seed=7)]))
    checked(at.button(key="train").click().run())
    assert "waits in the queue" in chips(at)[0]
    (mine,) = runs(at)
    assert told(store, mine) == "Waiting, place 2 in the queue, about 3 s"
    for seed in range(2):  # whoever comes later takes turns with who has waited longer
        store.enqueue(RunConfig(init_seed=seed + 30), visitor="c")
    last = store.enqueue(RunConfig(init_seed=99), visitor=store_visitor(store, mine))
    assert told(store, mine, last).startswith(
        "Waiting, places 2 and 5 in the queue, about 3 s until"
    )


def told(store: Store, *runs: int) -> str:
    """What stands in the player's progress bar."""
    from normviz.app.session.progress import status

    found = [run for one in runs if (run := store.run(one)) is not None]
    return status(Frames(store), found)["words"]


def store_visitor(store: Store, run: int) -> str | None:
    found = store.run(run)
    return found and found.visitor


def test_what_a_link_opened_stays_but_not_what_its_own_visitor_reloads(
    page: Open, folder: Path, become: Become
) -> None:
    store = Store(folder)
    run = store.enqueue(FREE, visitor="a")
    store.end(run, "stopped")
    page(encode([FREE]))
    assert not found(store, run).linked
    become("b")
    page(encode([FREE]))
    assert found(store, run).linked


def test_a_copied_link_keeps_its_runs(page: Open, folder: Path) -> None:
    from normviz.app.session.backend import shared
    from normviz.app.views.duel import share

    from normviz.runs.frames import Frames
    from normviz.runs.lane import stored_lane

    store = Store(folder)
    run = kept(store, FREE)
    page()
    share._keep([stored_lane("A", found(store, run), Frames(store))], shared())
    assert found(store, run).linked


def test_anatomy_measures_within_the_limits(
    anatomy: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch, open_runs=1)
    at = anatomy()
    assert any("Not measured here: you have 1 open runs" in error.value for error in at.error)
    assert len(Store(folder).queued()) == 1 and len(lanes(at)) == 2


def test_a_map_is_one_visitor_s_and_short(maps, folder: Path, become: Become) -> None:
    at = maps(small())
    assert "gives a visitor 12 min of maps and claims" in captions(at)
    checked(at.button(key="fill").click().run())
    (asked_for,) = {found(Store(folder), run).visitor for run in Store(folder).queued(cells=True)}
    assert asked_for == "a" and [b for b in at.button if b.key == "stop_fill"]
    become("b")
    theirs = maps(small())
    assert not [b for b in theirs.button if b.key in ("fill", "stop_fill")]
    wide = maps(small(depth="1,97"))
    checked(wide.button(key="fill").click().run())
    assert "Depth is 97, and this shared server" in wide.error[0].value


@pytest.mark.usefixtures("by_eager")
def test_a_claim_is_stopped_by_who_asked_for_it(claims, become: Become) -> None:
    at = claims(claim="E15")
    checked(at.button(key="run_E15").click().run())
    assert [b for b in at.button if b.key == "stop_E15"]
    become("b")
    theirs = claims(claim="E15")
    assert not [b for b in theirs.button if b.key in ("stop_E15", "run_E15")]
    long = claims(claim="E24")
    assert long.button(key="run_E24").disabled and "this shared server gives it up to" in captions(
        long
    )


@pytest.mark.usefixtures("by_eager")
def test_a_browser_that_clears_streamlits_cache_changes_nothing_here(
    claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bytes of any browser clear it. The server keeps its store, its threads, what it did, its limits."""
    import streamlit as st
    from normviz.app.session import backend

    checked(claims(claim="E15").button(key="run_E15").click().run())
    before, threads = backend.shared(), threading.active_count()
    st.cache_data.clear()
    st.cache_resource.clear()
    assert [b for b in claims(claim="E15").button if b.key == "stop_E15"]
    assert backend.shared() is before
    assert threading.active_count() == threads


@pytest.mark.usefixtures("by_eager")
def test_a_claim_that_takes_long_is_refused_again_where_its_button_is_pressed(folder: Path) -> None:
    """A script can press a button that is off."""
    from normviz.app.session.page_state import PageState
    from normviz.app.views.claims import run_panel

    run_panel._run(CLAIMS["E3"], state := PageState())
    assert state.refused is not None and "up to 12 min" in state.refused


def test_a_bad_switch_ends_the_server_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from normviz.app.session import policy

    monkeypatch.setattr(policy, "_chosen", None)
    monkeypatch.setenv("NORMVIZ_HOSTED", "perhaps")
    monkeypatch.delitem(sys.modules, "normviz.app.main", raising=False)
    monkeypatch.syspath_prepend(shipped_folder("app"))  # where `search_path` is
    with pytest.raises(SystemExit, match="NORMVIZ_HOSTED is 'perhaps', allowed is"):
        import_module("normviz.app.main")
