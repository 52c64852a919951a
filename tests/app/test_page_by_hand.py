"""The By hand page without a browser: its numbers are PyTorch's, its link opens the same, bad input
gets a sentence and costs nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
import torch
from crossing_kit import case
from hand_kit import EDITED, modules
from page_kit import address, at_page, checked, words_of
from streamlit.testing.v1 import AppTest

from normviz.lessons.by_hand import (
    EXPERIMENTS,
    KEYS,
    PRESETS,
    Example,
    brief,
    code,
    links,
    sentences,
    work,
)
from normviz.lessons.by_hand.formulas import keras_momentum

Open = Callable[..., AppTest]


@pytest.fixture
def hand(folder: Path) -> Open:
    """Opens the page at a query string, as a new visitor."""

    def opened(query: str = "") -> AppTest:
        at = at_page("by-hand")
        for pair in filter(None, query.split("&")):
            name, _, value = pair.partition("=")
            at.query_params[name] = value
        return checked(at.run())

    return opened


def example(at: AppTest) -> Example:
    return at.session_state["hand"].example


def outputs(at: AppTest) -> dict[str, list[list[str]]]:
    """The y tables of the page as texts, by norm."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    tables = [one["html"].split("<table>")[2] for one in found if "html" in one]
    rows = [re.findall(r"<tr.*?</tr>", table.split("<tbody>")[1]) for table in tables]
    cells = [[re.findall(r"<td[^>]*>([^<]*)", row) for row in table] for table in rows]
    return dict(zip(KEYS, cells, strict=True))


def written(at: AppTest) -> str:
    """All words of the page."""
    texts = [element.value for kind in (at.markdown, at.caption) for element in kind]
    sheets = [re.sub("<[^>]*>", " ", element.proto.body) for element in at.get("html")]
    return unescape(" ".join([*texts, *sheets])).replace("\\", "")


def assert_pytorch(at: AppTest) -> None:
    """All outputs on the page are those of PyTorch's modules in training."""
    given = example(at)
    x = torch.tensor(given.x, dtype=torch.float64)
    for key, norm in modules(given).items():
        wanted = [[brief(value, 3) for value in row] for row in norm(x).tolist()]
        assert outputs(at)[key] == wanted, key


def paste(at: AppTest, text: str) -> AppTest:
    at.text_area(key="hand_text").set_value(text)
    return checked(at.button(key="hand_use").click().run())


def test_the_numbers_are_those_of_pytorch_after_every_edit(hand: Open) -> None:
    at = hand()
    assert_pytorch(at)
    paste(at, "1, 2.5, -3\n4 5 6\n0.25;-1 7 2".replace("0.25;", ""))
    assert example(at).x == ((1, 2.5, -3), (4, 5, 6), (-1, 7, 2))
    assert_pytorch(at)
    checked(at.slider(key="hand_drag").set_value(-6.2).run())
    assert -6.2 in example(at).x[0]
    assert_pytorch(at)
    checked(at.number_input(key="hand_rows").set_value(5).run())
    checked(at.number_input(key="hand_features").set_value(4).run())
    assert len(example(at).x) == 5 and example(at).gamma == (1.0,) * 4
    checked(at.select_slider(key="hand_eps").set_value(0.1).run())
    assert_pytorch(at)


def test_every_preset_is_worked_out(hand: Open) -> None:
    at = hand()
    for preset in PRESETS:
        checked(at.button(key=f"begin_{preset.key}").click().run())
        assert example(at).x == preset.x
        if preset.key != "sample":
            assert_pytorch(at)
            continue
        assert {value for row in outputs(at)["batchnorm"] for value in row} == {"0"}
        assert "PyTorch refuses to train on it" in written(at)


def test_every_experiment_says_what_one_sees(hand: Open) -> None:
    at = hand()
    for n, experiment in enumerate(EXPERIMENTS.keys()):
        mode = ("eval", "train")[n % 2]
        with case(experiment, mode):
            checked(at.button_group(key="hand_try").set_value(experiment).run())
            checked(at.button_group(key="hand_mode").set_value(mode).run())
            it = work(example(at))
            assert (it.example.experiment, it.example.mode) == (experiment, mode)
            seen = (sentences.seen(it, key) for key in KEYS)
            for sentence in (sentences.lead(it), sentences.mode(it), *seen):
                assert sentence in written(at)
            shown = [code.torch(it).strip(), code.keras(it).strip()]
            assert [element.value for element in at.code] == shown
            if experiment == "alone":
                assert outputs(at)["layernorm"][1:] == [["–"] * 4] * 3
            if experiment == "padding":
                assert len(outputs(at)["rmsnorm"]) == 6
    assert "each position sees the future" in written(at)


def test_the_picked_cell_is_worked_out_step_by_step(hand: Open) -> None:
    at = hand()
    checked(at.button_group(key="hand_row").set_value(2).run())
    checked(at.button_group(key="hand_feature").set_value(4).run())
    for formula in ("(2 + 0 − 1 + 3) / 4 = 1", "(6 + 3 − 2 + 5) / 4 = 3", "√(3.5 + 1e−5) = 1.871"):
        assert formula in written(at)


def test_a_link_opens_the_same_page(hand: Open) -> None:
    assert_pytorch(hand(links.encode(EDITED.replace(eps=1e-5))))
    wanted = EDITED.trying("neighbour").replace(mode="eval", passes=3)
    at = hand(links.encode(wanted))
    assert example(at) == wanted
    assert not at.info and not at.error
    assert address(at) == links.as_params(wanted)
    assert f"momentum={keras_momentum(0.3)}" in at.code[1].value


def test_who_comes_back_finds_the_editor_as_it_was_left(hand: Open) -> None:
    at = hand()
    at.session_state["hand"].example = EDITED  # as if typed: the editor's own table is another
    at.session_state["page"] = "duel"
    at.query_params.clear()  # as the way to another page does
    checked(at.run())
    shown = at.dataframe[0].value.to_numpy().tolist()
    assert [[float(text) for text in line] for line in shown[:3]] == [list(row) for row in EDITED.x]


def test_a_bad_link_gets_a_sentence_and_an_offer(hand: Open) -> None:
    at = hand("x=1,2;3,4&row=7")
    assert "row is 7, allowed is a whole number from 1 to 2" in words_of(at.error[0])
    assert example(at).x == PRESETS["usual"].x
    editor = at.session_state["hand"].editor
    checked(at.button(key="mend_0").click().run())
    assert at.session_state["hand"].editor != editor  # else it would keep what was typed
    assert example(at).row == 2 and example(at).x == ((1, 2), (3, 4))


def test_no_link_shows_a_traceback(hand: Open) -> None:
    for query in ("x=1e400", "eps=nan", "x=<b>1</b>", "v=2", "amount=inf", "row="):
        assert hand(query).error, query


BAD = {
    "": "There is no number in it", "1, b": "Row 1, feature 2 is 'b': write a number",
    "1 2; 3": "Row 1 has 2 numbers and row 2 has 1", "inf 1": "Row 1, feature 1 is 'inf'",
    "1e300 1": "Row 1, feature 1 is '1e300'", "1\n" * 9: "The number of rows is 9",
}  # fmt: skip


def test_bad_input_gets_a_sentence_and_costs_nothing(hand: Open) -> None:
    at = hand()
    for text, sentence in BAD.items():
        with case(repr(text)):
            paste(at, text)
            assert sentence in words_of(at.error[0])
            assert example(at).x == PRESETS["usual"].x
            assert at.text_area(key="hand_text").value == text
    assert_pytorch(at)
    paste(at, "\n".join(" ".join(map(str, row)) for row in PRESETS["usual"].x))  # as it was
    assert not at.error
    paste(at, "1 2; 3 4")
    assert not at.error and example(at).x == ((1, 2), (3, 4))
