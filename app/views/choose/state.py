"""The session state of the guide: the visitor's answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import streamlit as st

from normviz.lessons.choose.answers import CODEC, SECTION, Answers, decode

from ...session import address
from ...session.page_state import PageState, chosen


@dataclass
class Choose(PageState):
    """One visitor's answers. `cost_first`: a link leads to what a norm costs, so that comes first."""

    answers: Answers = field(default_factory=Answers)
    cost_first: bool = False


def choose() -> Choose:
    """The session's answers. On arrival with a link, the link's."""
    params = address.params()
    page_answers: Choose | None = st.session_state.get("choose")
    if page_answers is None or (st.session_state["arrived"] and CODEC.reads(params)):
        answers, notices = decode(params)
        page_answers = st.session_state["choose"] = Choose(answers=answers, notices=notices)
    elif st.session_state["arrived"]:
        page_answers.notices = decode(params)[1]
    if st.session_state["arrived"]:
        page_answers.cost_first = params.get(SECTION) == ["cost"]
    return page_answers


def change(name: str) -> None:
    """Take a new answer from its widget."""
    page_answers: Choose = chosen("choose")
    page_answers.answers = replace(page_answers.answers, **{name: chosen(key_of(name))})
    page_answers.changed()


def key_of(name: str) -> str:
    """The key of a question's widget."""
    return f"choose_{name}"
