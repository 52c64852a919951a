"""The session state of the guide: the visitor's answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import streamlit as st

from normviz.lessons.choose.answers import CODEC, Answers, decode

from ...session import address
from ...session.page_state import PageState, chosen


@dataclass
class Choose(PageState):
    """One visitor's answers."""

    answers: Answers = field(default_factory=Answers)


def choose() -> Choose:
    """The session's answers. On arrival with a link, the link's."""
    params = address.params()
    it: Choose | None = st.session_state.get("choose")
    if it is None or (st.session_state["arrived"] and CODEC.reads(params)):
        answers, notices = decode(params)
        it = st.session_state["choose"] = Choose(answers=answers, notices=notices)
    elif st.session_state["arrived"]:
        it.notices = decode(params)[1]
    return it


def change(name: str) -> None:
    """Take a new answer from its widget."""
    it: Choose = chosen("choose")
    it.answers = replace(it.answers, **{name: chosen(key_of(name))})
    it.changed()


def key_of(name: str) -> str:
    """The key of a question's widget."""
    return f"choose_{name}"
