"""What the page makes of an address, and of runs that are there already."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from anatomy_kit import measure
from crossing_kit import case
from normviz.app.session import address as session_address
from page_kit import Open, address, checked, chips, copied, duel, runs, shown, view_at, words_of
from shelf_kit import SMALL, kept
from streamlit.testing.v1 import AppTest

from normviz import RunConfig, train
from normviz.lessons.presets import PRESETS
from normviz.lessons.tour import STEPS
from normviz.links import encode
from normviz.player import ChartOptions, Sent, message
from normviz.runs.frames import Frames
from normviz.runs.lane import stored_lane
from normviz.runs.store import Store, retention
from normviz.training.events import Started, Step


@pytest.mark.slow
def test_a_link_opens_the_curves_of_stored_runs_or_says_that_there_are_none(page: Open) -> None:
    at = page(encode([RunConfig(scheme="post")]))
    assert "at chance" in chips(at)[0] and len(runs(at)) == 1
    at = page(encode([RunConfig(depth=3), RunConfig(depth=3, scheme="post")]))
    assert any("Nobody has run this yet" in info.value for info in at.info)
    assert duel(at).lanes[1] == RunConfig(depth=3, scheme="post") and not runs(at)


def test_a_link_whose_run_made_room_says_so(page: Open, folder: Path) -> None:
    config, store = SMALL.replace(depth=5), Store(folder)
    retention.link(store, [kept(store, config)])
    assert list(retention.drop(store, 1, linked=True))
    at = page(encode([config]))
    (notice,) = [info for info in map(words_of, at.info) if "was stored here until" in info]
    assert "Train repeats it" in notice
    kept(store, config)  # somebody repeated it
    assert not [i for i in page(encode([config])).info if "was stored here" in i.value]


def test_a_link_of_an_attempt_that_was_stopped_shows_what_there_is(
    page: Open, folder: Path
) -> None:
    config, store = RunConfig(depth=2, steps=40), Store(folder)
    run = store.enqueue(config)
    for event in train(config):
        if isinstance(event, Started):
            store.started(run, event, os.getpid(), paused=False)
        if isinstance(event, Step) and event.step < 7:
            store.append(run, [event])
    store.end(run, "stopped")
    at = page(encode([config]))
    assert "stopped after 7 steps" in chips(at)[0]
    assert len(runs(at)) == 1


def test_a_rate_that_is_turned_is_the_lanes_and_their_runs_at_once(
    page: Open, folder: Path
) -> None:
    """Both runs take it at one step; the page shows what was asked, and asks once."""
    at, store = page(), Store(folder)
    checked(at.button(key="train").click().run())
    runs = duel(at).runs
    for run, reach in zip(runs, (9, 12), strict=True):
        config = RunConfig(scheme="post") if run == runs[1] else RunConfig()
        store.started(run, Started(config, "cpu", 1, 1, 3.3, 1.1, None), os.getpid(), False)
        store.append(run, [], reach)
    for _ in range(3):  # an echo of the same rate changes nothing
        checked(at.select_slider(key="knob_lr").set_value(0.01).run())
        taken = [lane.replace(lr_edits=((12, 0.01),)) for lane in PRESETS["hero"].lanes()]
        assert list(duel(at).lanes) == taken == [store.run(run).config for run in runs]
        assert at.select_slider(key="knob_lr").value == 0.01
    assert [action for run in runs for _, action, _ in store.controls(run, 0)] == ["lr", "lr"]
    assert address(at)["lr_edits"] == "12:0.01" and "lr_edits" not in at.query_params
    assert duel(page(encode(taken))).runs == runs  # who reloads the page finds what trains
    assert any("0.003 at first, 0.01 from step 12" in words_of(one) for one in at.caption)


def test_a_link_of_before_a_rate_was_turned_opens_the_run(page: Open, folder: Path) -> None:
    """Only a link: who sets the rate back wants a run without the turn."""
    store, before = Store(folder), SMALL
    run = store.enqueue(before)
    store.started(run, Started(before, "cpu", 1, 1, 3.3, 1.1, None), os.getpid(), False)
    store.append(run, [], 5)
    store.set_rate([run], 0.01)
    turned = before.replace(lr_edits=((5, 0.01),))
    at = page(encode([before]))
    assert (duel(at).lanes, duel(at).runs) == ((turned,), (run,))
    assert address(at)["lr_edits"] == "5:0.01"
    assert any("another learning rate while it trained" in words_of(one) for one in at.info)
    store.end(run, "finished")
    checked(at.select_slider(key="knob_lr").set_value(before.lr).run())
    assert duel(at).lanes == (before,)


def training(at: AppTest, store: Store, reach: int) -> tuple[int, ...]:
    """The runs of the lanes, as if their processes had come so far."""
    for run in duel(at).runs:
        store.started(
            run, Started(store.run(run).config, "cpu", 1, 1, 3.3, 1.1, None), os.getpid(), False
        )
        store.append(run, [], reach)
    checked(at.run())
    return duel(at).runs


@pytest.mark.slow
def test_a_rate_for_settings_that_do_not_train_leaves_what_trains_alone(
    page: Open, folder: Path
) -> None:
    """A run of the settings before goes on as it was; a lane of its own settings takes the rate."""
    at, store = page(), Store(folder)
    checked(at.button(key="train").click().run())
    runs = training(at, store, 12)
    checked(at.select_slider(key="knob_depth").set_value(6).run())
    checked(at.select_slider(key="knob_lr").set_value(0.03).run())
    assert at.select_slider(key="knob_lr").value == 0.03
    assert [(lane.depth, lane.lr) for lane in duel(at).lanes] == [(6, 0.03)] * 2
    assert not any(store.controls(run, 0) for run in runs)
    at = page()
    checked(at.button(key="train").click().run())
    runs = training(at, store, 12)
    checked(at.button_group(key="lane1_scheme").set_value("peri").run())
    checked(at.select_slider(key="knob_lr").set_value(0.03).run())
    first, second = duel(at).lanes
    assert (first.lr, first.lr_edits, second.lr) == (0.003, ((12, 0.03),), 0.03)
    assert [bool(store.controls(run, 0)) for run in runs] == [True, False]


def test_a_rate_that_is_turned_twice_before_the_page_looks_again_is_a_turn_both_times(
    page: Open, folder: Path
) -> None:
    """The lanes differ in another setting. No slider writes that at a value: a browser would send it."""
    at, store = page(encode([SMALL.replace(warmup=warmup) for warmup in (0, 200)])), Store(folder)
    checked(at.button(key="train").click().run())
    runs = training(at, store, 1)
    store.set_rate(runs, 0.01)
    checked(at.select_slider(key="knob_lr").set_value(0.03).run())
    assert duel(at).runs == runs
    assert [lane.lr_edits[-1][1] for lane in duel(at).lanes] == [0.03, 0.03]
    warmup = at.select_slider(key="knob_warmup")
    assert "(0 / 200)" in warmup.label and all(map(float.is_integer, map(float, warmup.options)))


def test_a_rate_that_no_run_takes_any_more_is_said(page: Open, folder: Path) -> None:
    at, store = page(), Store(folder)
    checked(at.button(key="train").click().run())
    training(at, store, 200)
    checked(at.select_slider(key="knob_lr").set_value(0.01).run())
    assert any("at their last steps" in words_of(one) for one in at.error)


def test_a_rate_that_another_page_turned_is_followed(page: Open, folder: Path) -> None:
    """Also where the run has ended by the time that this page looks again."""
    at, store = page(), Store(folder)
    checked(at.button(key="train").click().run())
    store.set_rate(duel(at).runs[:1], 0.01)
    store.end(duel(at).runs[0], "stopped")
    checked(at.run())
    assert [lane.lr for lane in duel(at).lanes] == [0.01, 0.003]
    assert "stopped" in chips(at)[0]


def test_a_bad_link_gets_a_sentence_and_an_offer(page: Open) -> None:
    at = page("v=1&depth=5000&scheme=pre,post")
    assert "depth is '5000', allowed is a whole number from 1 to 1000" in words_of(at.error[0])
    assert "learned" in chips(at)[0]  # the hero is there all the same
    checked(at.button(key="mend_0").click().run())
    assert [lane.depth for lane in duel(at).lanes] == [1000, 1000]


def test_each_page_says_what_a_mistyped_word_of_its_link_may_mean(folder: Path) -> None:
    for view, link, meant in (
        ("duel", {"v": "1", "scheme": "psot"}, "post"),
        ("duel", {"preset": "herro"}, "hero"),
        ("maps", {"across": "dept", "up": "lr"}, "depth"),
        ("catalogue", {"scheme": "psot"}, "post"),
        ("choose", {"start": "existing", "model": "lama"}, "llama"),
        ("own-model", {"model_type": "lama"}, "llama"),
        ("hand", {"try": "neighbor"}, "neighbour"),
    ):
        with case(view, meant):
            at = view_at(view, {name: [word] for name, word in link.items()})
            (said,) = (words_of(box) for box in (*at.error, *at.info))
            assert f"Did you mean '{meant}'?" in said and "?." not in said


def test_no_link_shows_a_traceback(page: Open) -> None:
    for query in (
        "v=9", "lanes=0", "depth=1e400", "scheme=<script>alert(1)</script>", "depth=1,2,3&lanes=2",
        "lr_edits=1:2:3", "preset=nothing",
    ):  # fmt: skip
        with case(query):
            at = page(query)
            assert at.error and len(runs(at)) == 2


@pytest.mark.slow
def test_who_came_by_a_link_stops_nobody_elses_run(page: Open, folder: Path) -> None:
    """Reset, Train and fewer lanes stop the visitor's own runs; those of others go on."""
    lanes = [RunConfig(scheme=scheme, depth=3) for scheme in ("pre", "post")]
    store = Store(folder)
    theirs = [store.enqueue(lane) for lane in lanes]
    for act in ("reset", "train"):
        at = page(encode(lanes))
        assert list(duel(at).runs) == theirs
        checked(at.button(key=act).click().run())
        assert not any(store.controls(run, 0) for run in theirs)
    mine = duel(at).runs
    checked(at.button(key="reset").click().run())
    assert all([action for _, action, _ in store.controls(run, 0)] == ["stop"] for run in mine)


def test_a_run_of_no_steps_has_no_update_and_shows_no_red(page: Open, folder: Path) -> None:
    config = RunConfig(depth=3, steps=0)
    store = Store(folder)
    measure(folder, config)
    at = page(f"{encode([config])}&probe=update_ratio")
    assert shown(at)["topic"]["probe"] == copied(at)["probe"] == "update_ratio"
    stored = store.latest(config.key)
    assert stored is not None
    lane = stored_lane("A  Pre-LN", stored, Frames(store))
    told = message([lane], "update_ratio", Sent(), live=False, options=ChartOptions())
    assert "not finite" not in json.dumps(told)


@pytest.mark.slow
def test_curves_of_earlier_settings_are_named_and_nothing_untrue_is_said_of_them(
    page: Open, folder: Path
) -> None:
    """At 16 blocks A has a stored run and B none: B's curves of 12 blocks are faded. At 20 both are."""
    kept(Store(folder), PRESETS["hero"].lanes()[0].replace(depth=16), steps=200)
    at = page()
    assert any("Only the norm moved" in one.value for one in at.caption)
    assert shown(at)["topic"]["earlier"] == ["", ""]
    assert not at.download_button(key="take_normviz-csv.zip").disabled
    first, second = duel(at).runs
    checked(at.select_slider(key="knob_depth").set_value(16).run())
    assert duel(at).runs[0] != first and duel(at).runs[1] == second
    for depth, earlier in ((16, ["", "depth 12"]), (20, ["depth 16", "depth 12"])):
        checked(at.select_slider(key="knob_depth").set_value(depth).run())
        assert shown(at)["topic"]["earlier"] == earlier
        said = " ".join([words_of(one) for one in at.markdown] + [one.value for one in at.caption])
        assert "Only the norm moved" not in said and "B: depth 12" in said
        assert at.download_button(key="take_normviz-csv.zip").disabled
    checked(at.button(key="train_before").click().run())
    assert shown(at)["topic"]["earlier"] == ["", ""] and "train_before" not in [
        b.key for b in at.button
    ]


@pytest.mark.slow
def test_a_link_holds_step_and_layer_until_the_duel_changes(page: Open) -> None:
    at = page("v=1&scheme=pre,post&at=30&layer=4")
    assert shown(at)["cursor"] == {"at": 30, "layer": 4}
    assert address(at) == {"v": "1", "scheme": "pre,post", "at": "30", "layer": "4"}
    checked(at.select_slider(key="knob_depth").set_value(16).run())
    assert shown(at)["cursor"] == {} and "at" not in address(at)
    at = page("v=1&scheme=pre,post&at=900&utm_source=x")
    assert shown(at)["cursor"] == {}
    (said,) = map(words_of, at.info)  # what a messenger appended is no stranger
    assert "allowed is a whole number from 0 to 199" in said


def test_a_link_of_a_preset(page: Open) -> None:
    at = page("preset=warmup")
    assert duel(at).lanes == PRESETS["warmup"].lanes()
    assert address(at)["warmup"] == "0,200" and "preset" not in address(at)
    for query, sentence in (
        ("preset=nothing", "the link names the unknown preset 'nothing'"),
        ("preset=warmup&depth=3", "names a preset and settings, allowed is one of them"),
        ("v=2&preset=warmup", "version '2', allowed is 1"),
    ):
        assert sentence in words_of(page(query).error[0])


def entry(at: AppTest) -> dict[str, str]:
    """The parameters of the newest entry of the browser's history that the page added."""
    return {name: "".join(word) for name, word in at.query_params.items()}


def test_back_leads_to_what_was_shown_trained_or_opened(page: Open, folder: Path) -> None:
    """A setting that was only passed on the way adds no entry, and the address does not name it."""
    at, store = page(), Store(folder)
    hero = {"v": "1", "scheme": "pre,post"}
    assert address(at) == hero and entry(at) == {}  # the page's own address, which names the duel
    for depth in (16, 20):
        checked(at.select_slider(key="knob_depth").set_value(depth).run())
        assert address(at) == hero and entry(at) == {} and copied(at)["depth"] == str(depth)
    checked(at.button(key="train").click().run())
    trained = {**hero, "depth": "20"}
    assert address(at) == entry(at) == trained
    for run in duel(at).runs:
        store.end(run, "finished")
    checked(at.select_slider(key="knob_depth").set_value(12).run())  # its runs ship
    assert address(at) == entry(at) == hero
    short = [RunConfig(scheme=scheme, depth=4) for scheme in ("pre", "post")]
    checked(at.select_slider(key="knob_depth").set_value(4).run())
    for number, config in enumerate(short):
        kept(store, config)
        checked(at.run())
        assert (entry(at) == hero) == (number == 0)
    assert address(at) == entry(at) == {**hero, "depth": "4"}
    checked(at.button(key="tour").click().run())
    assert entry(at)["story"] == "1"
    checked(at.button(key="story_close").click().run())
    assert address(at) == entry(at) and "story" not in entry(at)
    checked(at.button(key="reset").click().run())
    assert address(at) == entry(at) == {**hero, "probe": STEPS[0].probe}


def come(at: AppTest, query: str = "", page: str = "claims") -> AppTest:
    """Arrive from another page, with an address."""
    at.session_state["page"] = page
    at.query_params.clear()
    for name, words in parse_qs(query).items():
        at.query_params[name] = words
    return checked(at.run())


def test_a_link_of_another_page_opens_and_the_navigation_leads_back(
    page: Open, folder: Path
) -> None:
    at, store = page(), Store(folder)
    checked(at.select_slider(key="knob_depth").set_value(20).run())
    checked(at.button(key="train").click().run())
    lanes, runs = duel(at).lanes, duel(at).runs
    come(at)
    assert (duel(at).lanes, duel(at).runs) == (lanes, runs)
    assert address(at)["depth"] == "20" and entry(at) == {}  # no bare entry stays below it
    assert not any(store.controls(run, 0) for run in runs)
    come(at, encode([RunConfig(scheme="peri")]))
    assert duel(at).lanes == (RunConfig(scheme="peri"),)
    assert [action for run in runs for _, action, _ in store.controls(run, 0)] == ["stop"] * 2


def test_back_shows_what_its_entry_names(
    page: Open, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops the visitor's runs of other settings. A guess stays where the step is shown already."""
    at, store = page(encode([SMALL])), Store(folder)
    checked(at.button(key="train").click().run())
    (run,) = duel(at).runs
    monkeypatch.setattr(session_address, "is_old_entry", lambda: True)
    for query in ("v=1&scheme=pre,post", "story=3", "story=3&probe=stream_rms"):
        come(at, query, page="")
        assert address(at)["scheme"] == entry(at).get("scheme", address(at)["scheme"])
        assert [action for _, action, _ in store.controls(run, 0)] == ["stop"]
        if query == "story=3":
            duel(at).guess = 0
    assert (duel(at).story, duel(at).guess, duel(at).probe) == (3, 0, "stream_rms")
    assert duel(at).mine == {run}
