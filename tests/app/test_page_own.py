"""A placement of the visitor's own on the Duel page and as a map, without a browser."""

from __future__ import annotations

import pytest
from normviz.app.views.duel.own_placement import short
from page_kit import Open, address, at_page, checked, duel, settings_open, words_of

from normviz import RunConfig
from normviz.links import encode
from normviz.runs.store import Store

MINE = "own:norm_in:norm_main:skip_gain=2"


def test_a_long_name_is_short_where_it_would_move_what_is_beside_it() -> None:
    assert short("B Own: in + out, warm-up 200") == "B Own, warm-up 200"
    assert short("B Post-LN, warm-up 200") == "B Post-LN, warm-up 200"


def errors(at) -> list[str]:
    return [words_of(error) for error in at.error]


def test_ticks_and_fields_build_a_placement_and_nonsense_is_refused_under_them(
    page: Open, folder
) -> None:
    at = page(encode([RunConfig(steps=20), RunConfig(scheme="post", steps=20)]))
    checked(at.button_group(key="lane1_scheme").set_value("own").run())
    assert at.button_group(key="lane1_scheme").value == "post"
    assert at.checkbox(key="own1_all_norm_main").value is True
    checked(at.checkbox(key="own1_all_norm_in").check().run())
    assert duel(at).lanes[1].scheme == "pre_post_main"
    checked(at.text_input(key="own1_all_skip_gain").set_value("2").run())
    assert duel(at).lanes[1] == RunConfig(scheme=MINE, steps=20)
    assert at.button_group(key="lane1_scheme").value == MINE
    assert any(f"scheme={MINE}" in caption.value for caption in at.caption)
    assert any("2\\,x" in latex.value for latex in at.latex)
    checked(at.text_input(key="own1_all_skip_gain").set_value("two").run())
    (sentence,) = errors(at)
    assert "skip_gain is 'two', allowed is a number from 0 to 1000" in sentence
    assert (
        duel(at).lanes[1].scheme == MINE and at.text_input(key="own1_all_skip_gain").value == "two"
    )
    checked(at.text_input(key="own1_all_skip_gain").set_value("2:norm_out").run())
    assert "is '2:norm_out', allowed is" in errors(at)[0] and duel(at).lanes[1].scheme == MINE
    checked(at.text_input(key="own1_all_skip_gain").set_value("").run())
    checked(at.toggle(key="own1_each").set_value(True).run())
    checked(at.checkbox(key="own1_attention_norm_in").uncheck().run())
    assert duel(at).lanes[1].scheme == "own:ffn.norm_in:norm_main" and errors(at) == []
    checked(at.button(key="own1_train").click().run())
    assert [lane.scheme for lane in duel(at).lanes] == ["pre", "own:ffn.norm_in:norm_main"]
    queued = Store(folder).queued()
    assert len(queued) == 2
    checked(settings_open(at, 1).button(key="own1_train").click().run())
    assert Store(folder).queued() == queued  # both train already


def test_without_pre_ln_beside_it_a_placement_is_trained_in_a_duel_with_it(
    page: Open, folder
) -> None:
    at = settings_open(
        page(encode([RunConfig(scheme=MINE, steps=20), RunConfig(scheme="mixln")])), 0
    )
    at.session_state["lane0_slots"] = True
    checked(checked(at.run()).button(key="own0_train").click().run())
    assert duel(at).lanes == (RunConfig(steps=20), RunConfig(scheme=MINE, steps=20))
    assert len(Store(folder).queued()) == 2


def test_a_placement_without_slots_starts_from_pre_ln(page: Open) -> None:
    at = page(encode([RunConfig(), RunConfig(scheme="mixln", steps=20)]))
    at.session_state["lane1_slots"] = True
    settings_open(at, 1)
    assert any("Mix-LN can't be written as slots" in words_of(caption) for caption in at.caption)
    checked(at.checkbox(key="own1_all_norm_out").check().run())
    assert duel(at).lanes[1].scheme == "sandwich"


def test_a_link_carries_it_and_a_bad_one_gets_a_sentence(page: Open) -> None:
    lanes = (RunConfig(), RunConfig(scheme=MINE, steps=20))
    at = page(encode(lanes))
    assert duel(at).lanes == lanes and address(at)["scheme"] == f"pre,{MINE}"
    at = page("v=1&scheme=pre,own:norm_inn")
    assert any("'norm_inn' is no slot" in sentence for sentence in errors(at))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "words", "widget"),
    [
        ("maps", {"across": "depth", "up": "lr", "depth": "1,2", "lr": "0.001,0.01"}, "map_scheme"),
        ("catalogue", {"steps": "0"}, "anatomy_second"),
    ],
)
def test_other_pages_open_a_link_with_it(
    page: Open, path: str, words: dict[str, str], widget: str
) -> None:
    at = at_page(path)
    for name, value in {"v": "1", "scheme": f"pre,{MINE}", **words}.items():
        at.query_params[name] = value
    checked(at.run())
    (value,) = [w.value for w in (*at.multiselect, *at.selectbox) if w.key == widget]
    assert MINE in value and errors(at) == []
