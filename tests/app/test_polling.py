"""A part of a page that polls: the whole page runs once the work has ended, and then no more."""

from __future__ import annotations

from normviz.app.session.markdown import capital, sentence
from page_kit import checked
from streamlit.testing.v1 import AppTest


def polled(looks: list[bool]) -> AppTest:
    """A page that looks whether work goes on, and a part that looks after it. After `looks` it ended."""

    def page() -> None:
        import streamlit as st
        from normviz.app.widgets.polling import poll

        def goes_on() -> bool:
            return bool(st.session_state["looks"]) and st.session_state["looks"].pop(0)

        st.session_state["pages"] = st.session_state.get("pages", 0) + 1
        busy = goes_on()
        st.text("Stop" if busy else "Start")
        poll(goes_on, 60, busy)

    at = AppTest.from_function(page, default_timeout=120)
    at.session_state["looks"] = looks
    return checked(at.run())


def test_the_whole_page_runs_once_more_when_the_work_has_ended() -> None:
    for looks, says, pages in (
        ([True, True], "Stop", 1),
        ([True, False], "Start", 2),  # it ended between the page's look and the part's
        ([False, False], "Start", 1),
    ):
        at = polled(looks)
        assert at.text[0].value == says
        assert at.session_state["pages"] == pages


def test_words_become_a_sentence() -> None:
    assert sentence("it is RMSNorm") == sentence("It is RMSNorm.") == "It is RMSNorm."
    assert capital("it is RMSNorm") == "It is RMSNorm" and capital("") == ""
