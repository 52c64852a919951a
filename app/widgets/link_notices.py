"""Messages about the link that was opened: notices, and its problems, each with a corrected link."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st

from normviz.config import RunConfig
from normviz.links import Codec
from normviz.runs import Run
from normviz.runs.store import retention

from ..session import address, visitor
from ..session.backend import SharedBackend
from ..session.markdown import literal, sentence
from ..session.page_state import PageState
from .buttons import button

NO_LINKS = Codec((), version="")
"""Of a page that reads no parameters."""


def notices(page_state: PageState) -> None:
    """Show what the link says that is not used."""
    for notice in page_state.notices:
        st.info(literal(notice))


def show(page_state: PageState, instead: str, opens: Callable[..., None], *args: object) -> None:
    """Show the messages. `instead` says what the page shows while the link can't be opened;
    `opens(*args, query)` opens a corrected link."""
    notices(page_state)
    if page_state.link is None or not page_state.link.problems:
        return
    for i, problem in enumerate(page_state.link.problems):
        st.error(literal(sentence(f"this link can't be opened as it is: {problem.sentence}")))
        if problem.mended:
            words = literal(f"Open it with {problem.offer}")
            button(words, opens, *args, problem.mended, key=f"mend_{i}")
    st.caption(instead)


def unknown_parameters(codec: Codec = NO_LINKS) -> None:
    """A notice of the query parameters that the page does not read, and of those that are given twice."""
    params = address.params()
    for notice in (
        *codec.others(params),
        *(sentence(f"{each}: the first one is used") for each in codec.problems(params)),
    ):
        st.info(literal(notice))


def keep(runs: Sequence[Run], backend: SharedBackend) -> None:
    """Mark the runs that a link opened, so that retention keeps them: others may have the link too.

    The visitor's own runs are not marked: a mere reload opens their link too.
    """
    retention.link(backend.store, [run.id for run in runs if run.visitor != visitor.me()])


def gone(configs: Sequence[RunConfig], backend: SharedBackend) -> tuple[str, ...]:
    """A sentence if retention has deleted a run of the link from the store."""
    if not configs:
        return ()
    at = retention.dropped(backend.store, [config.key for config in configs])
    if not at:
        return ()
    day = time.strftime("%Y-%m-%d", time.gmtime(max(at.values())))
    return (
        f"What this link shows was stored here until {day}. Then the server deleted it to make room for "
        "newer runs. Train repeats it with the same settings and seeds.",
    )
