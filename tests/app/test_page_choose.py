"""The guide page without a browser: it answers at once, follows the questions, and says what is not known."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest
from page_kit import address, at_page, checked, words_of
from streamlit.testing.v1 import AppTest

from normviz.catalog import SCHEMES
from normviz.lessons.choose.answers import Answers
from normviz.lessons.choose.confusions import CONFUSIONS
from normviz.lessons.choose.facts import TERMS
from normviz.lessons.choose.picks import guide
from normviz.lessons.choose.properties import PROPERTIES, ROWS


@pytest.fixture
def choose(folder: Path):
    def opened(**params: str) -> AppTest:
        at = at_page("choose")
        for name, value in params.items():
            at.query_params[name] = value
        return checked(at.run())

    return opened


def html(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


@pytest.mark.slow
def test_the_page_opens_with_an_answer_its_cards_its_table_and_its_questions(choose) -> None:
    at = choose()
    it, text = guide(Answers()), html(at)
    assert f"<strong>{it.headline}</strong>" in text
    assert text.count('<section class="choose-card"') == len(it.picks)
    assert all(f"<h2>{pick.label}</h2>" in text for pick in it.picks)
    assert f"Compare {it.compares} in a duel" in text
    assert text.index(escape(CONFUSIONS["modern"].answer.text)) < text.index(
        '<section class="choose-card"'
    )
    assert address(at)["depth"] == "16" and "model" not in address(at)
    table = text[text.index("<table>") : text.index("</table>")]
    assert table.count("<td>") == len(ROWS) * len(PROPERTIES)
    assert all(f'<th scope="col">{SCHEMES.label(scheme)}</th>' in table for scheme in ROWS)
    assert "not measured" in table
    for box, one in zip(at.expander[1:], CONFUSIONS, strict=True):
        first, second = box.get("html")
        assert box.label == one.label and escape(one.answer.text) in first.proto.body
        assert all(escape(line.label) in second.proto.body for line in one.lines)
        assert [words.value for words in box.caption] == [one.symbols] * bool(one.symbols)


def test_the_scope_is_above_the_advice_and_the_limits_above_the_cards(choose) -> None:
    it, text = guide(Answers(depth="more")), html(choose(depth="more"))
    said = [it.scope, TERMS, it.headline, it.choice, it.differs, it.why, it.others, *it.limits]
    places = [text.index(escape(part)) for part in said if part]
    assert places == sorted(places) and len(places) == len(said) - (not it.differs)
    assert text.count(TERMS) == 1
    assert places[-1] < text.index('<section class="choose-card"')
    assert "More than 96 blocks: not measured" in text


def test_another_answer_changes_cards_and_address(choose) -> None:
    """A link's answer that is not used is said; a model is asked for only where there is one."""
    at = choose(depth="16", tuned="yes", precision="fp64")
    assert at.selectbox(key="choose_tuned").value == "yes"
    (said,) = [words_of(box) for box in at.info]
    assert said.startswith("The link gives precision 'fp64', allowed is fp32, bf16, fp16, fp8")
    checked(at.selectbox(key="choose_depth").set_value("64").run())
    assert not at.info and address(at)["depth"] == "64"
    it = guide(Answers(depth="64", tuned="yes"))
    assert f"<strong>{it.headline}</strong>" in html(at) and "Toy models only: 64 blocks" in html(
        at
    )
    assert not [box for box in at.selectbox if box.key == "choose_model"]
    checked(at.selectbox(key="choose_start").set_value("existing").run())
    checked(at.selectbox(key="choose_model").set_value("olmo2").run())
    assert "<strong>Keep Res-post-norm</strong>" in html(at)
    assert address(at)["model"] == "olmo2"
