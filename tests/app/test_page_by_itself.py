"""Short duels that train after a change of a setting, without a browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hosted_kit import turn_on
from normviz.app.session import training, visitor
from normviz.app.session.backend import shared
from normviz.app.views.duel.values import SHOWN
from page_kit import Open, address, checked, chips, duel, runs, settings_open, shown
from shelf_kit import kept
from streamlit.testing.v1 import AppTest

from normviz import RunConfig
from normviz.lessons.presets import PRESETS, quick
from normviz.lessons.tour import STEPS
from normviz.links import encode
from normviz.runs import Run
from normviz.runs.store import Store

pytestmark = pytest.mark.slow

SHORT = RunConfig(depth=5, steps=20)
ASKING = next(n for n, step in enumerate(STEPS, start=1) if step.question)


@pytest.fixture(autouse=True)
def two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "default_slots", lambda policy: 2)


def depth(at: AppTest, value: int) -> AppTest:
    return checked(at.select_slider(key="knob_depth").set_value(value).run())


def shown_runs(at: AppTest, store: Store) -> list[Run]:
    found = [store.run(number) for number in duel(at).runs if number is not None]
    return [run for run in found if run is not None]


def stopped(store: Store, number: int) -> bool:
    return "stop" in [action for _, action, _ in store.controls(number, 0)]


def test_a_quick_placement_trains_nothing_because_its_run_ships(page: Open, folder: Path) -> None:
    at, store, config = settings_open(page(by_itself=True), 1), Store(folder), [*quick()][-1]
    checked(at.button_group(key="lane1_scheme").set_value(config.scheme).run())
    checked(at.selectbox(key="lane1_init").set_value(config.init).run())
    assert duel(at).lanes[1] == config and len(runs(at)) == 2
    assert not any("press Train" in chip for chip in chips(at))
    assert store.queued() == [] and all(store.latest(one.key) for one in quick())


def test_a_change_trains_the_lanes_without_a_result_and_another_replaces_it(
    page: Open, folder: Path
) -> None:
    at, store = settings_open(page(by_itself=True), 1), Store(folder)
    hero = duel(at).runs
    checked(at.selectbox(key="lane1_norm").set_value("rmsnorm").run())
    first = duel(at).runs
    assert first[0] == hero[0] and first[1] not in hero  # A has a run that ships
    assert store.queued() == [first[1]]
    assert [run.config for run in shown_runs(at, store)] == list(duel(at).lanes)
    assert first[1] in duel(at).mine and duel(at).start == "follow"
    assert shown(at)["begins"] and not shown(at)["asked"]  # the settings stay open on a phone

    depth(at, 10)  # before the first one has ended
    assert first[1] and stopped(store, first[1])
    second = duel(at).runs
    assert set(store.queued()) == {first[1], *second} and not set(second) & set(first)
    checked(at.run())
    assert duel(at).runs == second  # once for each change


def test_a_change_of_one_lane_leaves_the_run_of_another_alone(page: Open, folder: Path) -> None:
    at, store = page(encode([SHORT, SHORT.replace(scheme="post")]), by_itself=True), Store(folder)
    depth(at, 4)
    first, second = duel(at).runs
    checked(at.button_group(key="lane1_scheme").set_value("peri").run())
    assert duel(at).runs[0] == first and not stopped(store, first or 0)
    assert duel(at).runs[1] != second and stopped(store, second or 0)


def test_a_link_that_nobody_ran_starts_nothing_and_equal_lanes_share_one_run(
    page: Open, folder: Path
) -> None:
    at = page(encode([SHORT, SHORT]), by_itself=True)
    checked(at.run())
    assert "Nobody has run this yet" in at.info[0].value and "Press Train" in at.info[0].value
    assert Store(folder).queued() == [] and duel(at).runs == (None, None)
    depth(at, 4)
    one, other = duel(at).runs
    assert one == other and Store(folder).queued() == [one]


def test_a_preset_a_suggestion_and_a_tour_step_start_nothing(page: Open, folder: Path) -> None:
    at = page(by_itself=True)
    checked(at.button(key="try_1").click().run())  # of settings without a stored run
    assert duel(at).lanes != PRESETS["hero"].lanes()
    checked(at.button(key="tour").click().run())
    assert Store(folder).queued() == []


@pytest.mark.parametrize("opened", ["try_1", "tour"])
def test_values_of_the_duel_before_do_not_reach_the_one_that_was_opened(
    page: Open, folder: Path, opened: str
) -> None:
    """A browser sends them where something reruns the page before it has the values of the new duel."""
    at, store = settings_open(page(by_itself=True), 1), Store(folder)
    depth(at, 20)
    checked(at.selectbox(key="lane1_norm").set_value("rmsnorm").run())
    before, number = len(store.queued()), at.text_input(key=SHOWN).value
    checked(at.button(key=opened).click().run())
    lanes = duel(at).lanes
    with suppress(KeyError):  # the tour has no settings
        at.select_slider(key="knob_depth").set_value(20)
        at.selectbox(key="lane1_norm").set_value("rmsnorm")
        at.button_group(key="lane1_scheme").set_value("peri")
    at.text_input(key=SHOWN).set_value(number)
    checked(at.run())
    checked(at.run())  # with the values of the new duel
    assert duel(at).lanes == lanes and len(store.queued()) == before
    if opened == "try_1":
        assert at.select_slider(key="knob_depth").value == lanes[0].depth
        depth(at, 10)
        assert len(store.queued()) > before


@pytest.mark.usefixtures("by_eager")
def test_a_long_duel_waits_for_train(page: Open, folder: Path) -> None:
    at = page(by_itself=True)
    for steps in (400, 5000):
        checked(at.select_slider(key="knob_steps").set_value(steps).run())
        assert Store(folder).queued() == []
        assert all("settings changed: press Train" in chip for chip in chips(at))


def test_the_estimate_counts_the_runs_that_train_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hero, _ = PRESETS["hero"].lanes()
    assert training.seconds([hero, hero]) == training.seconds([hero])
    assert training.seconds([hero] * 4) == 2 * training.seconds([hero])
    monkeypatch.setattr(training, "default_slots", lambda policy: 1)
    assert training.seconds([hero, hero]) == 2 * training.seconds([hero])


def test_the_switch_turns_it_off_and_on(page: Open, folder: Path) -> None:
    at, store = page(encode([SHORT]), by_itself=True), Store(folder)
    checked(at.toggle(key="by_itself").set_value(False).run())
    depth(at, 4)
    assert store.queued() == []
    checked(at.toggle(key="by_itself").set_value(True).run())  # trains what was changed before
    assert store.queued() == [*duel(at).runs]


def test_a_run_that_the_visitor_started_is_not_replaced(page: Open, folder: Path) -> None:
    at, store = page(encode([SHORT]), by_itself=True), Store(folder)
    checked(at.button(key="train").click().run())
    (own,) = duel(at).runs
    depth(at, 4)
    assert store.queued() == [own] and not stopped(store, own or 0)
    store.end(own or 0, "finished")
    checked(at.run())  # nor does its end start another one
    assert store.queued() == []
    assert any("settings changed: press Train" in chip for chip in chips(at))


def test_pause_and_stop_end_what_started_by_itself(page: Open, folder: Path) -> None:
    at, store = page(encode([SHORT]), by_itself=True), Store(folder)
    depth(at, 4)
    (run,) = duel(at).runs
    assert run is not None
    assert address(at)["depth"] == "5"
    checked(at.button(key="stop").click().run())
    assert address(at)["depth"] == "4"  # what is stopped can be found again
    store.end(run, "stopped")
    checked(at.run())
    assert store.queued() == []  # it does not start again
    number = kept(store, SHORT.replace(depth=6), "paused")
    it = duel(at)
    it.runs, it.mine, it.automatic = (number,), it.mine | {number}, frozenset({number})
    depth(at, 8)
    assert store.queued() == [] and not stopped(store, number)


def test_a_repeat_that_trains_is_not_replaced(page: Open, folder: Path) -> None:
    at, store = page(by_itself=True), Store(folder)
    checked(at.button(key="repeat").click().run())
    repeats = store.queued()
    depth(at, 10)
    assert repeats and store.queued() == repeats
    assert not any(stopped(store, number) for number in repeats)


def test_a_guess_is_not_spoiled(page: Open, folder: Path) -> None:
    at, store = page(f"story={ASKING}", by_itself=True), Store(folder)
    assert not {"train", "step", "repeat"} & {button.key for button in at.button}
    store.db.connection.execute("DELETE FROM runs")
    training.by_itself(duel(at), shared())  # as if a setting had just been changed
    checked(at.run())
    assert store.queued() == [] and not runs(at)


def test_a_shared_server_trains_by_itself_only_while_no_run_waits(
    page: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_on(monkeypatch)
    monkeypatch.setattr(visitor, "me", lambda: "a")
    monkeypatch.setattr(visitor, "session", lambda: "page of a")
    at, store = page(encode([SHORT]), by_itself=True), Store(folder)
    theirs = store.enqueue(SHORT.replace(init_seed=9), visitor="b")
    depth(at, 4)
    assert store.queued() == [theirs] and not at.error
    assert any("press Train" in chip for chip in chips(at))
    store.end(theirs, "finished")
    depth(at, 3)
    (own,) = duel(at).runs
    assert own is not None and store.queued() == [own]
    depth(at, 2)  # its own run that waits does not count
    assert stopped(store, own) and len(store.queued()) == 2
    depth(at, 128)  # more than a shared server trains: no error for what nobody asked for
    assert not at.error and len(store.queued()) == 2
