"""The cost section of the guide without a browser: it opens by its link with a result, and shows new ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost_kit import made
from page_kit import checked, view_at
from streamlit.testing.v1 import AppTest

from normviz.studies.norm_cost import findings, stored_results
from normviz.studies.norm_cost.variants import VARIANTS


def opened() -> AppTest:
    return checked(view_at("choose", {"section": ["cost"]}))


@pytest.fixture
def cost(folder: Path) -> AppTest:
    return opened()


def texts(at: AppTest) -> str:
    return "\n".join(each.value for each in (*at.markdown, *at.caption)).replace("\\", "")


def test_it_opens_with_the_shipped_measurement(cost: AppTest) -> None:
    assert findings.verdict(stored_results.shipped()) in texts(cost)
    assert "shipped" in cost.selectbox(key="cost_shown").options[0]
    assert len(cost.get("vega_lite_chart")) == 3
    (operations, numbers) = (table.value for table in cost.dataframe)
    assert list(operations["Norm"]) == [v.label for v in VARIANTS]
    assert len(numbers) == len(stored_results.shipped().rows)


@pytest.mark.slow
def test_a_new_result_is_shown_and_stays_after_a_reload(folder: Path) -> None:
    mine = made()
    stored_results.keep(mine, folder)
    cost = opened()
    assert findings.verdict(mine) in texts(cost)
    cost.selectbox(key="cost_shown").set_value(stored_results.shipped().when)
    assert findings.verdict(stored_results.shipped()) in texts(checked(cost.run()))


def test_it_names_the_command_that_times(cost: AppTest) -> None:
    assert "`normviz bench norms`" in texts(cost)
    assert not [button for button in cost.button if button.key != "all_words"]


def test_its_charts_are_drawn_once_it_is_open(folder: Path) -> None:
    at = checked(view_at("choose", {}))
    assert findings.verdict(stored_results.shipped()) in texts(at) and not at.get("vega_lite_chart")
    at.session_state["cost_open"] = True
    assert len(checked(at.run()).get("vega_lite_chart")) == 3
