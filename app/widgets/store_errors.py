"""Shows errors of the store as sentences on the page, and lets the rest of the page render."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from normviz.execution.startup import problem
from normviz.home import FolderError
from normviz.runs.store import StoreDamaged, StoreError
from normviz.runs.store.disk_reserve import scarce

from ..session import backend
from ..session.markdown import literal, sentence
from ..session.page_state import chosen
from ..session.policy import policy

CLICKS = "store_trouble"
"""The errors of callbacks that the page has not shown yet. They are added to a list: a callback that writes
`st.session_state` can be ended there (see `page_state.chosen`), and the error would be lost."""


def guarded(act: Callable[..., None]) -> Callable[..., None]:
    """Decorate a fragment or a part of a page: an error of the store is shown in its place."""

    @wraps(act)
    def call(*args: Any, **more: Any) -> None:
        try:
            act(*args, **more)
        except (StoreError, FolderError) as error:
            say(error)

    return call


def reported(act: Callable[..., None]) -> Callable[..., None]:
    """Decorate a callback. It runs before the page renders, so its error is shown at the top of the page."""

    @wraps(act)
    def call(*args: Any, **more: Any) -> None:
        try:
            act(*args, **more)
        except (StoreError, FolderError) as error:
            if not _is_mended(error):
                chosen(CLICKS).append(str(error))

    return call


def say(error: StoreError | FolderError) -> None:
    """Show the error. If a damaged store was replaced by a new one, rerun the page instead."""
    if _is_mended(error):
        st.rerun()
    st.error(_sentence(str(error)))


def begin() -> None:
    """Begin a page, whose callbacks may meet errors."""
    st.session_state.setdefault(CLICKS, [])


def show(place: DeltaGenerator) -> None:
    """At the top of a page: errors of callbacks, warnings about the store, a nearly full disk, and that no
    worker can start."""
    with place:
        for error in st.session_state[CLICKS]:
            st.error(_sentence(error))
        st.session_state[CLICKS].clear()
        for warning in backend.problems():
            st.warning(_sentence(warning))
        if folder := backend.folder():
            for words in filter(None, (scarce(folder), problem(folder))):
                st.warning(_sentence(words))


def _is_mended(error: StoreError | FolderError) -> bool:
    """Whether the store was damaged and is now replaced by a new one."""
    try:
        return isinstance(error, StoreDamaged) and backend.renew()
    except StoreError:  # it can't be replaced: the page shows the first error
        return False


def _sentence(words: str) -> str:
    return literal(sentence(policy().without_paths(words)))
