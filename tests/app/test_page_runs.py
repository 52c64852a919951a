"""The History page without a browser: its list and filters, reopening, comparing and deleting."""

from __future__ import annotations

from pathlib import Path

import pytest
from normviz.app.session import visitor
from page_kit import Open, at_page, checked, duel, words_of
from page_kit import chips as badges
from page_kit import runs as drawn
from shelf_kit import SMALL, kept
from streamlit.testing.v1 import AppTest

from normviz.links import encode
from normviz.runs.store import Condition, Query, Store


@pytest.fixture
def shelf(folder: Path) -> AppTest:
    return at_page("runs")


def listed(at: AppTest) -> list[int]:
    return [int(box.key.removeprefix("pick_")) for box in at.checkbox if box.key]


def ours(at: AppTest, store: Store) -> list[int]:
    """What is listed before the runs that ship with the product."""
    runs = [(number, store.run(number)) for number in listed(at)]
    assert [number for number, run in runs if run is None] == []
    shipped = [run is not None and run.origin == "shipped" for _, run in runs]
    assert shipped == sorted(shipped)
    return [number for (number, _), ships in zip(runs, shipped, strict=True) if not ships]


def shipped(store: Store) -> int:
    return store.listed(Query(((Condition("origin", ("shipped",)),),)), 1).total


def pick(at: AppTest, *runs: int) -> AppTest:
    for run in runs:
        checked(at.checkbox(key=f"pick_{run}").set_value(True).run())
    return at


def own(at: AppTest, *runs: int) -> AppTest:
    """As if this visit had trained them."""
    duel(at).mine |= frozenset(runs)
    return checked(at.run())


def sentences(at: AppTest) -> str:
    parts = (*at.info, *at.caption, *at.markdown, *at.toast)
    return "\n".join(str(part.value) for part in parts)


def test_every_run_stands_there_with_what_came_of_it(shelf: AppTest, folder: Path) -> None:
    store = Store(folder)
    run = kept(store, SMALL.replace(scheme="peri", lr=0.01, init_seed=3))
    store.db.connection.execute(
        "UPDATE runs SET engine = 'eager', why = 'the tape trains decoders alone' WHERE id = ?",
        (run,),
    )
    at = checked(shelf.run())
    assert listed(at)[0] == run and len(listed(at)) == min(25, 1 + shipped(store))
    text = sentences(at)
    assert "**Peri-LN** LayerNorm" in at.checkbox(key=f"pick_{run}").label
    assert "depth 3, steps 40, learning rate 0.01" in text
    assert "init seed 3, data seed 0" in text and "loss 1.50" in text
    assert (
        "just now" in text
        and "on CPU, by PyTorch" in text
        and text.count("[shipped]") == len(listed(at)) - 1
    )
    assert any("learned" in badge for badge in badges(at))
    why = "NormViz's engine in C++ trains decoders alone."
    assert why in [caption.proto.help for caption in at.caption if "by PyTorch" in caption.value]


@pytest.mark.slow
def test_filters_and_search(shelf: AppTest, folder: Path) -> None:
    at = checked(shelf.run())
    store = Store(folder)
    peri = kept(store, SMALL.replace(scheme="peri"))
    copy = kept(store, SMALL.replace(task="copy"), "diverged")
    measured = kept(store, SMALL.replace(steps=0), steps=1)
    assert ours(checked(at.run()), store) == [copy, peri]
    checked(at.toggle(key="runs_measured").set_value(True).run())
    assert ours(at, store) == [measured, copy, peri]
    checked(at.selectbox(key="runs_task").set_value("copy").run())
    assert ours(at, store) == [copy]
    checked(at.selectbox(key="runs_task").set_value(None).run())
    checked(at.selectbox(key="runs_scheme").set_value("peri").run())
    assert ours(at, store) == [peri]
    checked(at.selectbox(key="runs_scheme").set_value(None).run())
    checked(at.button_group(key="runs_whose").set_value("Shipped").run())
    assert ours(at, store) == [] and len(listed(at)) == min(25, shipped(store))
    checked(at.button_group(key="runs_whose").set_value("Mine").run())
    assert listed(at) == [] and "not trained anything here" in sentences(at)
    assert listed(own(at, peri)) == [peri]
    checked(at.button_group(key="runs_whose").set_value("All").run())
    checked(at.text_input(key="runs_search").set_value("diverged").run())
    assert ours(at, store) == [copy]


def test_a_hostile_search_finds_nothing_and_says_so(shelf: AppTest) -> None:
    at = checked(shelf.run())
    for words in ("%_'\"<script>", "'; DROP TABLE runs; --", "**x** $y$ :red[z]"):
        checked(at.text_input(key="runs_search").set_value(words).run())
        assert listed(at) == []
        assert "No placement, norm, task, setting or state is called" in words_of(at.info[0])
        assert "<script>" not in at.info[0].value


def test_pages_of_a_long_list(shelf: AppTest, folder: Path) -> None:
    at, store = checked(shelf.run()), Store(folder)
    runs = [kept(store, steps=1) for _ in range(60)]
    total = 60 + shipped(store)
    assert (
        listed(checked(at.run())) == runs[:-26:-1] and f"1 to 25 of {total}" in at.caption[0].value
    )
    checked(at.get("pagination")[0].set_value(3).run())
    assert ours(at, store) == runs[9::-1] and f"51 to {min(75, total)} of" in at.caption[0].value
    for run in runs:
        store.delete(run)
    left = shipped(store)
    pages = f"{(left - 1) // 25 * 25 + 1} to {left} of {left}"  # the last one of fewer pages than before
    assert pages in checked(at.run()).caption[0].value


def test_nothing_stored_yet(shelf: AppTest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normviz.app.session.backend.adopt", lambda store: None)
    Store(folder).db.connection.execute("DELETE FROM runs")
    at = checked(shelf.run())
    assert "No run is stored here yet" in words_of(at.info[0])


def test_one_run_is_reopened(shelf: AppTest, folder: Path) -> None:
    """Exactly that one, although there is a newer one of the same settings."""
    at, store = checked(shelf.run()), Store(folder)
    for status, words in (("finished", "Reopen in the duel"), ("running", "Watch it in the duel")):
        run = kept(store, SMALL, status)
        kept(store, SMALL)
        duel(at).seeds = 5
        pick(checked(at.run()), run)
        assert at.button(key="reopen").label == words
        at = checked(at.button(key="reopen").click().run())
        assert duel(at).lanes == (SMALL,) and drawn(at) == [run]
        at = checked(at_page("runs").run())


@pytest.mark.slow
def test_several_are_compared(shelf: AppTest, folder: Path) -> None:
    at, store = checked(shelf.run()), Store(folder)
    configs = [SMALL.replace(scheme=s, depth=d) for s, d in (("peri", 3), ("post", 4), ("pre", 3))]
    chosen = [kept(store, config) for config in configs]
    pick(checked(at.run()), *chosen)
    (table,) = (table.value for table in at.table)
    assert list(table.index) == ["placement", "depth", "outcome", "final loss"]
    assert table.loc["depth"].tolist() == ["3", "4", "3"]
    checked(at.button(key="reopen").click().run())
    assert duel(at).lanes == tuple(configs) and drawn(at) == chosen


def test_five_are_too_many_to_compare(shelf: AppTest, folder: Path) -> None:
    at, store = checked(shelf.run()), Store(folder)
    pick(own(at, *(many := [kept(store) for _ in range(5)])), *many)
    assert at.button(key="reopen").disabled and "At most 4 fit" in sentences(at)
    assert not at.button(key="delete_chosen").disabled
    checked(at.button(key="choose_none").click().run())
    assert not [button for button in at.button if button.key == "reopen"]


def test_a_run_of_another_release_is_counted(shelf: AppTest, folder: Path) -> None:
    store = Store(folder)
    run = kept(store)
    store.db.connection.execute("UPDATE runs SET key = 'e0-0' WHERE id = ?", (run,))
    at = checked(shelf.run())
    assert "1 of these can't be shown: they come from another release" in sentences(at)


@pytest.mark.slow
def test_what_can_not_be_deleted_says_why(shelf: AppTest, folder: Path) -> None:
    at, store = checked(shelf.run()), Store(folder)
    theirs, still = kept(store), kept(store, SMALL, "running")
    own(at, still)
    for run, why in (
        (theirs - 1, "ships with NormViz"),
        (theirs, "from this browser"),
        (still, "stop it first"),
    ):
        pick(at, run)
        assert at.button(key="delete_chosen").disabled and why in sentences(at)
        checked(at.checkbox(key=f"pick_{run}").set_value(False).run())
    pick(at, still)
    checked(at.button(key="stop_chosen").click().run())
    assert [action for _, action, _ in store.controls(still, 0)] == ["stop"]


def test_a_run_that_an_earlier_visit_began_is_stopped(
    shelf: AppTest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitor, "me", lambda: "a")
    store = Store(folder)
    run = kept(store, SMALL, "running")
    store.db.connection.execute("UPDATE runs SET visitor = 'a' WHERE id = ?", (run,))
    at = checked(shelf.run())
    pick(at, run)
    checked(at.button(key="stop_chosen").click().run())
    assert [action for _, action, _ in store.controls(run, 0)] == ["stop"]


def test_an_own_run_is_deleted_after_a_question(shelf: AppTest, folder: Path, page: Open) -> None:
    at, store = checked(shelf.run()), Store(folder)
    run, other = kept(store), kept(store, SMALL.replace(depth=4))
    pick(own(at, run, other), run)
    checked(at.button(key="delete_chosen").click().run())
    assert "for good?" in sentences(at)
    checked(at.button(key="keep_chosen").click().run())
    assert store.run(run) is not None
    checked(at.button(key="delete_chosen").click().run())
    checked(at.button(key="delete_sure").click().run())
    assert store.run(run) is None and ours(at, store) == [other]
    assert "Deleted 1 run." in sentences(at)
    assert "Nobody has run this yet" in page(encode([SMALL])).info[0].value


def test_nobody_deletes_what_became_another_s(shelf: AppTest, folder: Path) -> None:
    """The question is on screen, and by then the run is not this visitor's, or is gone."""
    at, store = checked(shelf.run()), Store(folder)
    run, gone = kept(store), kept(store)
    pick(own(at, run, gone), run, gone)
    checked(at.button(key="delete_chosen").click().run())
    store.delete(gone)
    duel(at).mine = frozenset()
    checked(at.button(key="delete_sure").click().run())
    assert store.run(run) is not None and "Nothing was deleted." in sentences(at)
