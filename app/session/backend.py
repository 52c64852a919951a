"""What all visitors share: the store, its readers, and the supervisor behind them."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit import runtime

from normviz import hosted, shipped
from normviz.claims.live import Bench
from normviz.frames import Frames
from normviz.norm_cost.client import Lab
from normviz.presence import Watchers
from normviz.run_list import Shelf
from normviz.runner.client import Backend
from normviz.shipped import adopt
from normviz.store import Store, StoreFull
from normviz.store.repair import damage, opened
from normviz.sweep.fill import Filler


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


_renewing = threading.Lock()


@st.cache_resource(show_spinner=False)
def _state() -> dict[str, Path]:
    """The folder of the store once it is open. Survives a store that is set aside."""
    return {}


@st.cache_resource(show_spinner=False)
def found() -> list[str]:
    """What every visitor should know of the store: sentences without a full stop."""
    return []


def folder() -> Path | None:
    """The folder of the store, None before anybody asked for it."""
    return _state().get("folder")


@st.cache_resource(show_spinner=False)
def _open() -> Shared:
    store, said = opened()
    _state()["folder"] = store.folder
    if said is not None:
        found().append(said)
        print(f"normviz: {said}.", file=sys.stderr, flush=True)
    try:
        adopt(store)
    except StoreFull as error:  # what is there can be looked at
        print(f"normviz: {error}", file=sys.stderr, flush=True)
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
    shipped.adopt_cells(_open().store)


def shared() -> Shared:
    """The shared back end, with a live supervisor behind it."""
    it = _open()
    if it.backend.is_damaged and renew():
        it = _open()
    it.backend.ensure()
    return it


def renew() -> bool:
    """Set a damaged store aside and begin a fresh one; whether it was damaged.

    Raises StoreError where the damaged one is still in use.
    """
    with _renewing:  # many visitors may find it at once
        it = _open()
        if damage(it.store.db.path, thorough=True) is None:
            return False
        it.backend.close()
        _open.clear()
        adopt_maps.clear()
        _open()
        return True
