"""The first page with models that are not decoders, without a browser."""

from __future__ import annotations

import pytest
from page_kit import Open, checked, duel, words_of

from normviz.catalog import CELLS, FAMILIES, TASKS
from normviz.config import RunConfig
from normviz.links import encode


@pytest.mark.parametrize("key", [one.key for one in FAMILIES if one.key != "decoder"])
def test_a_link_opens_with_its_formula_and_settings(page: Open, key: str) -> None:
    lane = RunConfig(family=key)
    other = "cell_none" if lane.scheme in CELLS else "post"
    at = page(encode([lane, lane.replace(scheme=other)]))
    assert [one.family for one in duel(at).lanes] == [key, key]
    assert at.selectbox(key="knob_family").value == key
    labels = {TASKS.label(task) for task in FAMILIES[key].tasks}
    assert {*at.selectbox(key="knob_task").options} == labels
    at.session_state["why"] = True
    at.session_state["lane0_open"] = True
    at.session_state["more"] = True
    checked(at.run())


def test_changing_the_family_brings_its_settings_and_back(page: Open) -> None:
    at = page(encode([RunConfig(init_seed=5)]))
    checked(at.selectbox(key="knob_family").set_value("rnn").run())
    (lane,) = duel(at).lanes
    assert (lane.family, lane.scheme, lane.task, lane.init_seed) == (
        "rnn", "pre_activation", "digits", 5
    )  # fmt: skip
    checked(at.selectbox(key="knob_family").set_value("decoder").run())
    assert duel(at).lanes == (RunConfig(init_seed=5),)


def test_a_setting_that_a_family_lacks_gets_its_sentence(page: Open) -> None:
    at = page(encode([RunConfig(family="mlp")]))
    at.session_state["lane0_open"] = True
    at.run()
    checked(at.selectbox(key="lane0_qk_norm").set_value("on").run())
    assert any(
        "it has no attention" in words_of(one) for one in [*at.error, *at.warning, *at.markdown]
    )
