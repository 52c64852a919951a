"""What all visitors share: the store, its readers, and the supervisor behind them."""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass

import streamlit as st
from streamlit import runtime

from normviz import hosted, shipped_maps
from normviz.claims.live import Bench
from normviz.cost.client import Lab
from normviz.frames import Frames
from normviz.runner.client import Backend
from normviz.shelf import Shelf
from normviz.shipped import adopt
from normviz.store import Store
from normviz.sweep.fill import Filler
from normviz.watching import Watchers


@dataclass(frozen=True)
class Shared:
    """The server's one store, its readers, supervisor, filler and lab."""

    store: Store
    frames: Frames
    shelf: Shelf
    backend: Backend
    filler: Filler
    bench: Bench
    lab: Lab
    watchers: Watchers


@st.cache_resource(show_spinner=False)
def _open() -> Shared:
    store = Store()
    adopt(store)
    gc.collect()
    gc.freeze()  # what was imported stays: later collections have little to look at
    alone = threading.Lock() if hosted.limits() else None  # each is a process with PyTorch
    filler = Filler(store, hosted.processes(), alone)
    bench = Bench(store, hosted.processes(), alone)
    return Shared(
        store,
        Frames(store),
        Shelf(store),
        Backend(store),
        filler,
        bench,
        Lab(store.folder),
        Watchers(store, _is_open, (filler, bench)),
    )


def _is_open(session: str) -> bool:
    """Whether a page is still connected; Streamlit notices a closed one within seconds."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def watchers() -> Watchers:
    """Who watches what on this server."""
    return _open().watchers


@st.cache_resource(show_spinner="Unpacking the runs that ship")
def adopt_maps() -> None:
    """Put the runs of maps and claims into the store, once: a thousand that few visitors look at."""
    shipped_maps.adopt(_open().store)


def shared() -> Shared:
    """The shared back end, with a live supervisor behind it."""
    it = _open()
    it.backend.ensure()
    return it
