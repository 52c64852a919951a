"""The page's behaviour, without a browser: AppTest on a store of its own, no supervisor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from normviz import RunConfig, train
from normviz.catalog import PROBES, SCHEMES
from normviz.events import Started, Step
from normviz.home import VARIABLE, shipped
from normviz.links import encode
from normviz.runner.client import Backend
from normviz.store import Store

MAIN = str(shipped("app") / "main.py")
Open = Callable[..., AppTest]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that the page uses."""
    import streamlit as st

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(Backend, "ensure", lambda self: None)
    st.cache_resource.clear()
    return tmp_path


@pytest.fixture
def page(folder: Path) -> Open:
    """Opens the page at a query string."""

    def opened(query: str = "") -> AppTest:
        at = AppTest.from_file(MAIN, default_timeout=60)
        for pair in filter(None, query.split("&")):
            name, _, value = pair.partition("=")
            at.query_params[name] = value
        return checked(at.run())

    return opened


def checked(at: AppTest) -> AppTest:
    assert not at.exception, at.exception[0].message
    return at


def duel(at: AppTest):
    return at.session_state["duel"]


def chips(at: AppTest) -> list[str]:
    return [m.value for m in at.markdown if "-badge[" in m.value]


def specs(at: AppTest) -> list[dict]:
    return [json.loads(chart.proto.spec) for chart in at.get("vega_lite_chart")]


def test_opens_with_the_finished_hero_and_replays(page: Open) -> None:
    at = page()
    first, second = chips(at)
    assert "learned: loss 1." in first
    assert "stuck at chance" in second
    assert len(specs(at)) == 4  # loss, bars, one heatmap a lane
    assert duel(at).replay is not None


def test_the_page_never_loads_torch(folder: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]);"
        "from streamlit.testing.v1 import AppTest;"
        "from normviz.runner.client import Backend; Backend.ensure = lambda self: None;"
        "at = AppTest.from_file(sys.argv[1], default_timeout=60).run();"
        "assert not at.exception and at.get('vega_lite_chart');"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, MAIN, str(Path(MAIN).parent)], check=True)


@pytest.mark.parametrize("scheme", SCHEMES.keys())
def test_a_switch_changes_its_lane_alone(page: Open, scheme: str) -> None:
    at = page()
    checked(at.button_group(key="lane1_scheme").set_value(scheme).run())
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme=scheme))


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("lane0_norm", "rmsnorm", {"norm": "rmsnorm"}),
        ("lane0_init", "torch", {"init": "torch"}),
        ("lane0_qk_norm", "on", {"qk_norm": "on"}),
    ],
)
def test_pickers_change_their_lane(page: Open, key: str, value: str, expected: dict) -> None:
    at = page()
    checked(at.selectbox(key=key).set_value(value).run())
    assert duel(at).lanes == (RunConfig(**expected), RunConfig(scheme="post"))


@pytest.mark.parametrize(
    ("name", "value"), [("depth", 24), ("warmup", 100), ("steps", 50), ("lr", 0.1)]
)
def test_knobs_change_all_lanes(page: Open, name: str, value: float) -> None:
    at = page()
    checked(at.select_slider(key=f"knob_{name}").set_value(value).run())
    assert [getattr(lane, name) for lane in duel(at).lanes] == [value, value]
    assert "settings changed" in chips(at)[0]
    assert at.button(key="train").label == "Train (settings changed)"


@pytest.mark.parametrize(
    ("name", "typed", "sentence"),
    [
        ("width", "2000", "Width is '2000', allowed is a whole number from 4 to 1024"),
        ("width", "30", "Width is 30 and heads is 4, but the heads must divide the width"),
        ("dropout", "x", "Dropout is 'x', allowed is a number from 0 to below 1"),
        ("clip", "-1", "Clip is '-1', allowed is off, or a number above 0, up to 1e+06"),
    ],
)
def test_a_bad_value_is_said_and_changes_nothing(
    page: Open, name: str, typed: str, sentence: str
) -> None:
    at = page()
    before = duel(at).lanes
    checked(at.text_input(key=f"knob_{name}").set_value(typed).run())
    assert [error.value for error in at.error] == [sentence]
    assert duel(at).lanes == before


def test_one_lane_can_differ_in_any_setting(page: Open) -> None:
    at = page()
    checked(at.selectbox(key="lane1_own").set_value("init_seed").run())
    checked(at.text_input(key="lane1_value").set_value("7").run())
    assert [lane.init_seed for lane in duel(at).lanes] == [0, 7]
    assert any("init seed: 0 → 7" in caption.value for caption in at.caption)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_one_to_four_lanes(page: Open, n: int) -> None:
    at = page()
    checked(at.button_group(key="n_lanes").set_value(n).run())
    assert len(chips(at)) == n
    assert len(specs(at)) == 2 + n


@pytest.mark.parametrize("probe", PROBES.keys())
def test_every_probe_can_be_shown(page: Open, probe: str) -> None:
    at = page()
    checked(at.selectbox(key="probe").set_value(probe).run())
    assert any(PROBES[probe].definition in caption.value for caption in at.caption)
    assert PROBES[probe].label in json.dumps(specs(at)[1])


def test_the_cursor_moves_the_bars_and_ends_the_replay(page: Open) -> None:
    at = page()
    checked(at.slider(key="cursor").set_value(57).run())
    assert any("at step 57" in m.value for m in at.markdown)
    assert duel(at).replay is None


def test_train_queues_every_lane_and_the_address_names_them(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button_group(key="lane1_scheme").set_value("peri").run())
    checked(at.button(key="train").click().run())
    store = Store(folder)
    runs = [store.run(run) for run in duel(at).runs]
    assert [(run.config.scheme, run.status) for run in runs if run] == [
        ("pre", "queued"), ("peri", "queued"),
    ]  # fmt: skip
    assert at.query_params["scheme"] in ("pre,peri", ["pre,peri"])
    checked(at.button(key="stop").click().run())
    assert {action for run in runs if run for _, action, _ in store.controls(run.id, 0)} == {"stop"}


def test_a_new_rate_goes_to_the_open_runs(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button(key="train").click().run())
    checked(at.select_slider(key="knob_lr").set_value(0.01).run())
    store = Store(folder)
    for run in duel(at).runs:
        assert [(a, v) for _, a, v in store.controls(run, 0)] == [("lr", 0.01)]
    assert [lane.lr for lane in duel(at).lanes] == [0.003, 0.003]  # until the runs took it


def test_reset_brings_the_hero_back(page: Open) -> None:
    at = page()
    checked(at.select_slider(key="knob_depth").set_value(24).run())
    checked(at.button(key="reset").click().run())
    assert duel(at).lanes == (RunConfig(), RunConfig(scheme="post"))
    assert "learned" in chips(at)[0]


def test_a_link_of_a_stored_run_opens_its_curves(page: Open) -> None:
    at = page(encode([RunConfig(scheme="post")]))
    assert "stuck at chance" in chips(at)[0]
    assert len(specs(at)) == 3


def test_a_link_that_nobody_ran_says_so(page: Open) -> None:
    at = page(encode([RunConfig(depth=3), RunConfig(depth=3, scheme="post")]))
    assert any("Nobody has run this yet" in info.value for info in at.info)
    assert duel(at).lanes[1] == RunConfig(depth=3, scheme="post")
    assert not specs(at)


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
    assert len(specs(at)) == 3


def test_the_address_names_what_was_chosen(page: Open) -> None:
    at = page()
    assert not dict(at.query_params)
    checked(at.select_slider(key="knob_depth").set_value(24).run())
    assert at.query_params["depth"] in ("24", ["24"])


def test_a_run_whose_lane_goes_is_stopped(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button(key="train").click().run())
    kept, gone = duel(at).runs
    checked(at.button_group(key="n_lanes").set_value(1).run())
    store = Store(folder)
    assert [action for _, action, _ in store.controls(gone, 0)] == ["stop"]
    assert not store.controls(kept, 0)


def test_a_rate_that_a_run_took_shows_in_its_lane_alone(page: Open, folder: Path) -> None:
    at = page()
    checked(at.button(key="train").click().run())
    first, _ = duel(at).runs
    checked(at.select_slider(key="knob_lr").set_value(0.01).run())
    taken = RunConfig(lr_edits=((5, 0.01),))
    Store(folder).edited(first, taken)
    checked(at.run())
    assert duel(at).lanes == (taken, RunConfig(scheme="post"))


def test_a_bad_link_gets_a_sentence_and_an_offer(page: Open) -> None:
    at = page("v=1&depth=5000&scheme=pre,post")
    assert "depth is '5000', allowed is a whole number from 1 to 1000" in at.error[0].value
    assert "learned" in chips(at)[0]  # the hero is there all the same
    checked(at.button(key="mend_0").click().run())
    assert [lane.depth for lane in duel(at).lanes] == [1000, 1000]


@pytest.mark.parametrize(
    "query",
    ["v=9", "lanes=0", "depth=1e400", "lr=inf", "scheme=<script>alert(1)</script>", "lanes=5",
     "depth=1,2,3&lanes=2", "width=nan", "lr_edits=1:2:3", "batch=-1", "steps=1e9"],
)  # fmt: skip
def test_no_link_shows_a_traceback(page: Open, query: str) -> None:
    at = page(query)
    assert at.error
    assert len(specs(at)) == 4


def test_a_store_of_another_version_is_said(page: Open, folder: Path) -> None:
    store = Store(folder)
    store.db.connection.execute("PRAGMA user_version = 99")
    at = page()
    assert "version 99" in at.error[0].value
