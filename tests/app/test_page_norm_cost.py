"""The Norm cost page without a browser: it opens with a result, asks, and says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from cost_kit import made
from page_kit import at_page, checked, words_of
from streamlit.testing.v1 import AppTest

from normviz.studies.norm_cost import findings, stored_results
from normviz.studies.norm_cost.client import Lab, State
from normviz.studies.norm_cost.result import CostSetting
from normviz.studies.norm_cost.variants import VARIANTS


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[CostSetting]:
    """What the page asked the lab for; nothing is measured."""
    asked: list[CostSetting] = []

    def start(self: Lab, setting: CostSetting) -> None:
        asked.append(setting)
        self.state = State(setting, "Round 3 of 20, about 9 s left", 0.1)

    monkeypatch.setattr(Lab, "start", start)
    return asked


@pytest.fixture
def cost(folder: Path) -> AppTest:
    return checked(at_page("cost").run())


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
def test_measure_asks_for_what_the_knobs_say(cost: AppTest, started: list[CostSetting]) -> None:
    cost.select_slider(key="cost_width").set_value(64).run()
    cost.select_slider(key="cost_tokens").set_value(256).run()
    checked(cost.button(key="cost_start").click().run())
    assert started == [CostSetting(width=64, tokens=256)]
    assert cost.button(key="cost_start").disabled and not cost.button(key="cost_stop").disabled
    (bar,) = cost.get("progress")
    assert "Round 3 of 20" in bar.proto.text


@pytest.mark.slow
def test_too_much_is_a_sentence_and_no_button(cost: AppTest, started: list[CostSetting]) -> None:
    checked(cost.select_slider(key="cost_width").set_value(1024).run())
    assert "at most 180 are allowed" in words_of(cost.error[0])
    assert cost.button(key="cost_start").disabled


@pytest.mark.slow
def test_a_new_result_is_shown_and_stays_after_a_reload(folder: Path, cost: AppTest) -> None:
    from normviz.app.session.backend import shared

    mine = made()
    stored_results.keep(mine, folder)
    shared().lab.state = State(mine.setting, finished=1)
    checked(cost.run())
    assert findings.verdict(mine) in texts(cost)
    again = checked(at_page("cost").run())
    assert findings.verdict(mine) in texts(again)
    again.selectbox(key="cost_shown").set_value(stored_results.shipped().when)
    assert findings.verdict(stored_results.shipped()) in texts(checked(again.run()))


@pytest.mark.slow
def test_what_went_wrong_is_said(cost: AppTest) -> None:
    from normviz.app.session.backend import shared

    shared().lab.state = State(CostSetting(), problem="the process was killed by signal 9")
    checked(cost.run())
    assert words_of(cost.warning[0]) == "Nothing was measured: the process was killed by signal 9."
