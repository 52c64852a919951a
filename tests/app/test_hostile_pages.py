"""Hostile words in the boxes of every page, and hostile messages of what draws in the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest
from crossing_kit import case
from hostile_kit import SCRIPTS, STRANGE
from hypothesis import example, given, settings
from hypothesis import strategies as st
from normviz.app.session import backend
from page_kit import checked, duel, view_at, words_of
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest
from test_hostile import VALUES, assert_sentence
from test_hostile_files import mutated

from normviz import RunConfig
from normviz.execution.client import SupervisorClient
from normviz.home import VARIABLE

pytestmark = pytest.mark.slow

TYPED = st.sampled_from([word for word in (*STRANGE, *SCRIPTS) if "\ud800" not in word]) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=30
)
BOXES = ("text_input", "text_area", "number_input")
WITH_BOXES = ("duel", "maps", "claims", "catalogue", "hand", "own-model", "runs")
Page = Callable[[str], AppTest]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, with_cells: Path) -> Iterator[Path]:
    """A data folder that all pages of this module share, and no supervisor."""
    folder = tmp_path_factory.mktemp("home")
    copyfile(with_cells, folder / with_cells.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder))
        patch.setattr(SupervisorClient, "ensure", lambda self: None)
        patch.setattr(backend.shipped, "adopt_cells", lambda *_: None)
        backend.forget()
        yield folder
    backend.forget()


@pytest.fixture(scope="module")
def pages(home: Path) -> Page:
    """Each page once: what is typed into it is typed on top of what was typed before."""
    made: dict[str, AppTest] = {}

    def page(view: str) -> AppTest:
        if view not in made:
            made[view] = checked(view_at(view, {}))
        return made[view]

    return page


# Boxes


@given(st.sampled_from(WITH_BOXES), st.integers(0, 99), TYPED)
@settings(max_examples=7)
def test_any_word_in_any_box_is_taken_or_told(
    pages: Page, view: str, which: int, word: str
) -> None:
    at = pages(view)
    boxes = [box for kind in BOXES for box in at.get(kind)]
    box = boxes[which % len(boxes)]
    value = which - 50 if box.type == "number_input" else word
    box.set_value(value)
    for button in at.button:
        if button.key == "own_show":  # its text counts once it is pressed
            button.click()
    checked(at.run())
    for told in (*at.error, *at.warning):
        assert_sentence(words_of(told))


@given(TYPED | st.binary(max_size=200), st.booleans())
@settings(max_examples=5)
@example("ab" * 200, False)
def test_any_text_is_taken_or_told(pages: Page, text: str | bytes, loaded: bool) -> None:
    at = pages("duel")
    if not at.text_area:
        checked(at.selectbox(key="knob_task").set_value("text").run())
    content = text.encode() if isinstance(text, str) else text
    if loaded or isinstance(text, bytes):
        at.text_area[0].set_value("")
        at.file_uploader[0].upload("<b>.txt", content, "text/plain")
    else:
        at.file_uploader[0].clear()
        at.text_area[0].set_value(text)
    checked(at.button(key="use_text").click().run())
    for told in at.error:
        assert_sentence(words_of(told))


@given(TYPED | st.lists(st.sampled_from("0123456789.-e,; \n\t[]"), max_size=30).map("".join))
@settings(max_examples=6)
def test_any_pasted_table_is_taken_or_told(pages: Page, text: str) -> None:
    at = pages("hand")
    at.text_area(key="hand_text").set_value(text)
    checked(at.button(key="hand_use").click().run())
    for told in at.error:
        assert_sentence(words_of(told))


def test_a_search_of_too_many_words_is_told(pages: Page) -> None:
    at = pages("runs")
    checked(at.text_input(key="runs_search").set_value("depth " * 25).run())
    said = [words_of(one) for one in at.info]
    assert said == ["The search has 25 words, allowed are up to 20: leave some out."]
    checked(at.text_input(key="runs_search").set_value("").run())
    assert not at.info


def changed() -> None:
    """Inside a session: more digits than Python takes as a number, where steps are asked for."""
    import streamlit as st
    from normviz.app.session import duel

    from normviz import RunConfig

    it = duel.duel()
    it.lanes = (RunConfig(lr_edits=((5, 0.01), (7, 0.02))),)
    duel.change(it, "steps", "9" * 5000)
    st.session_state["said"] = it.complaint
    duel.change(it, "steps", "6")


def test_steps_of_thousands_of_digits_are_told(home: Path) -> None:
    at = checked(AppTest.from_function(changed, default_timeout=120).run())
    assert "allowed is a whole number from 0 to 20000" in at.session_state["said"]
    assert duel(at).lanes == (RunConfig(steps=6, lr_edits=((5, 0.01),)),)


# Messages


def sent(edits: Any) -> Any:
    """What the table editor hands over of such a message: lines as numbers."""
    if not isinstance(edits, dict) or not all(re.fullmatch(r"-?[0-9]", line) for line in edits):
        return edits
    return {int(line): cells for line, cells in edits.items()}


def heard() -> None:
    """Inside a session: what the browser's parts say, whatever that is."""
    import json

    import streamlit as st
    from normviz.app.session import duel
    from normviz.app.views.by_hand import matrix as hand_matrix
    from normviz.app.views.by_hand import state as hand_state
    from normviz.app.views.maps import charts
    from normviz.app.widgets import player
    from test_hostile_pages import sent

    from normviz.catalog import PROBES
    from normviz.charts.map import PICK
    from normviz.player import VIEWS

    st.session_state["arrived"] = True
    it, hand = duel.duel(), hand_state.hand()
    for value in json.loads(st.session_state["values"]):
        hand_matrix._pick(value)
        hand_state.typed(sent(value))
        st.session_state["player"] = {"probe": value, "view": value}
        player._take("player", it, "probe", PROBES.keys())
        player._take("player", it, "view", VIEWS)
        assert it.probe in PROBES and it.view in VIEWS
        for event in (value, {PICK: value}, {PICK: [value]}, {PICK: [{"key": value}]}):
            key = charts._picked({"selection": event})
            assert key is None or key == value
    st.session_state["said"] = hand.complaint
    st.session_state["x"] = hand.example.x


KEYS = st.sampled_from(["0", "1", "-1", "9", "x"])
EDITS = st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=2) | VALUES, max_size=2)


def say(*values: Any) -> AppTest:
    at = AppTest.from_function(heard, default_timeout=60)
    at.session_state["values"] = json.dumps(values)
    return checked(at.run())


@given(st.lists(VALUES | EDITS | st.just("0,0") | st.just("9,9") | st.just("1,1e5"), max_size=8))
@settings(max_examples=8)
@example(["x", 5, "1", "1,2,3", "9" * 5000 + ",1", "²,1"])
@example([{"0": {"0": "9"}}, {"0": {"99": "9"}}, {"99": {"1": "9"}}, {"0": 5}, {"0": {"1": 5}}, 5])
def test_any_message_is_a_click_or_nothing(home: Path, values: list[Any]) -> None:
    told = say(*values).session_state["said"]
    assert told is None or len(told) > 10


def send(at: AppTest, part: str, **message: str) -> AppTest:
    """A message of a part of the page, by the way that those of a browser take."""
    states = at._tree.get_widget_states()
    states.widgets.append(WidgetState(id=part, **message))
    at._run(states)
    return checked(at)


NO_CELL = (
    {"edited_rows": {"0": {"0": "9"}}}, {"edited_rows": {"0": {"99": "9"}}},
    {"edited_rows": {"99": {"1": "9"}}}, {"edited_rows": {"-1": {"1": "9"}}},
    {"edited_rows": {"0": {"1": 5}}}, {"edited_rows": {"0": 5}},
    {"edited_rows": {"0": {"1": "9"}}, "added_rows": [{"x": 1}]}, {"deleted_rows": ["x"]},
)  # fmt: skip


def test_an_edit_of_no_cell_changes_no_cell(home: Path) -> None:
    at = checked(view_at("hand", {}))
    before = at.session_state["hand"].example
    for message in NO_CELL:
        with case(message):
            send(at, at.dataframe[0].proto.id, string_value=json.dumps(message))
            assert at.session_state["hand"].example == before
            assert "belongs to no cell of this table" in words_of(at.error[0])
    good = {"edited_rows": {"0": {"1": "7.5"}}}
    send(at, at.dataframe[0].proto.id, string_value=json.dumps(good))  # it begins anew
    assert at.session_state["hand"].example.x[0][0] == 7.5 and not at.error


def test_a_player_that_names_no_chart_changes_none(home: Path) -> None:
    at = checked(view_at("duel", {}))
    player = next(e.proto.id for e in at.get("bidi_component") if "-player" in e.proto.id)
    for said in ("<b>", 5, ["heat"], {"heat": 1}, None):
        send(at, player, json_value=json.dumps({"probe": said, "view": said}))
        assert (duel(at).probe, duel(at).view) == ("grad_block", "heat")
    send(at, player, json_value=json.dumps({"probe": "grad_block", "view": "lines"}))
    assert duel(at).view == "lines"


# Files on the page


def test_the_cost_page_draws_whatever_lies_in_its_folder(pages: Page, home: Path) -> None:
    """What is read of such files, `test_any_measurement_is_told_or_left_out` has."""
    (home / "cost").mkdir()
    for place, value in ((("rows",), []), (("rows", 0, "variant"), "gone"), (("when",), "9")):
        (home / "cost" / f"{place[-1]}.json").write_text(mutated(place, value))
    page = pages("choose")
    page.session_state["cost_open"] = True
    at = checked(page.run())
    assert len(at.get("vega_lite_chart")) == 3


def test_a_page_without_a_data_folder_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SupervisorClient, "ensure", lambda self: None)
    for view, folder in (
        ("duel", "~nosuchuser/x"),
        ("runs", "/dev/null/x"),
        ("duel", f"/{'a' * 300}"),
    ):
        monkeypatch.setenv(VARIABLE, folder)
        backend.forget()
        at = checked(view_at(view, {}))
        assert folder in words_of(at.error[0])
    backend.forget()
