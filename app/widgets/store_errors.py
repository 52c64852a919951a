"""What is wrong with the store, as sentences on the page: never a traceback, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from normviz.home import FolderError
from normviz.store import StoreDamaged, StoreError
from normviz.store.disk_reserve import scarce

from ..session import backend
from .markdown import literal, sentence

CLICK = "store_trouble"


def guarded(act: Callable[..., None]) -> Callable[..., None]:
    """A fragment or a part of a page: what is wrong with the store stands in its place."""

    @wraps(act)
    def call(*args: Any, **more: Any) -> None:
        try:
            act(*args, **more)
        except (StoreError, FolderError) as error:
            say(error)

    return call


def kept(act: Callable[..., None]) -> Callable[..., None]:
    """A callback, which comes before the page: what is wrong with the store is said on top of it."""

    @wraps(act)
    def call(*args: Any, **more: Any) -> None:
        try:
            act(*args, **more)
        except (StoreError, FolderError) as error:
            if not _is_mended(error):
                st.session_state[CLICK] = str(error)

    return call


def say(error: StoreError | FolderError) -> None:
    """The sentence; where the store was damaged and a fresh one begun, the page anew."""
    if _is_mended(error):
        st.rerun()
    st.error(_sentence(str(error)))


def show(place: DeltaGenerator) -> None:
    """On top of a page: what a click met, what became of a damaged store, and a full disk."""
    with place:
        if CLICK in st.session_state:
            st.error(_sentence(st.session_state.pop(CLICK)))
        for found in backend.found():
            st.warning(_sentence(found))
        if (folder := backend.folder()) and (words := scarce(folder)):
            st.warning(_sentence(words))


def _is_mended(error: StoreError | FolderError) -> bool:
    """Whether a damaged store was set aside just now."""
    try:
        return isinstance(error, StoreDamaged) and backend.renew()
    except StoreError:  # it can't be: the first sentence says what is wrong
        return False


def _sentence(words: str) -> str:
    return literal(sentence(words))
