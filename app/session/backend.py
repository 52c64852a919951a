"""What all sessions of this server share: the store, its readers, and the supervisor's client."""

from __future__ import annotations

import gc
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit import runtime

from normviz import hosted
from normviz.claims.server_jobs import ClaimJobs
from normviz.execution.client import SupervisorClient
from normviz.maps.fill import MapJobs
from normviz.norm_cost.client import Lab
from normviz.presence import OpenPages
from normviz.runs import shipped
from normviz.runs.frames import Frames
from normviz.runs.listing import RunList
from normviz.runs.shipped import adopt
from normviz.runs.store import Store, StoreFull
from normviz.runs.store.repair import damage
from normviz.runs.store.repair import opened as open_store

from . import visitor


@dataclass(frozen=True)
class SharedBackend:
    """The server's store, its readers, and the clients of everything that runs in other processes."""

    store: Store
    frames: Frames
    run_list: RunList
    supervisor: SupervisorClient
    map_jobs: MapJobs
    claim_jobs: ClaimJobs
    lab: Lab
    watchers: OpenPages


_renewing = threading.Lock()


@st.cache_resource(show_spinner=False)
def _state() -> dict[str, Path]:
    """The store's folder, once the store is open. Kept when a damaged store is set aside."""
    return {}


@st.cache_resource(show_spinner=False)
def found() -> list[str]:
    """Warnings about the store for every visitor: sentences without a full stop."""
    return []


def folder() -> Path | None:
    """The store's folder; None before the store is opened."""
    return _state().get("folder")


@st.cache_resource(show_spinner=False)
def _open() -> SharedBackend:
    store, said = open_store(again=folder() is not None)
    _state()["folder"] = store.folder
    if said is not None:
        found().append(said)
        print(f"normviz: {said}.", file=sys.stderr, flush=True)
    try:
        adopt(store)
    except StoreFull as error:  # the runs that are stored can still be read
        print(f"normviz: {error}", file=sys.stderr, flush=True)
    gc.collect()
    gc.freeze()  # modules stay for good: later collections skip them
    # Maps and claims both start processes with PyTorch: a shared server runs one at a time.
    alone = threading.Lock() if hosted.limits() else None
    map_jobs = MapJobs(store, hosted.processes(), alone)
    claim_jobs = ClaimJobs(store, hosted.processes(), alone)
    return SharedBackend(
        store,
        Frames(store),
        RunList(store),
        SupervisorClient(store),
        map_jobs,
        claim_jobs,
        Lab(store.folder),
        OpenPages(store, _is_open, (map_jobs, claim_jobs)),
    )


def _is_open(session: str) -> bool:
    """Whether a page is still connected; Streamlit notices a closed one within seconds."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def opened() -> SharedBackend:
    """The shared back end, for what only reads: it starts no supervisor."""
    it = _open()
    return _open() if it.store.db.is_gone and renew() else it


def watchers() -> OpenPages:
    """The server's record of which pages show which runs."""
    return opened().watchers


@st.cache_resource(show_spinner="Unpacking the runs that ship")
def adopt_maps() -> None:
    """Add the shipped runs of maps and claims to the store, once and only when a page needs them."""
    shipped.adopt_cells(_open().store)


@st.cache_resource(show_spinner=False, max_entries=1000)
def adopt_cell(key: str) -> None:
    """Add the shipped cell of a map or a claim with this key to the store, once."""
    shipped.adopt_cell(_open().store, key)


def shared() -> SharedBackend:
    """The shared back end. Starts the supervisor if none is alive."""
    it = opened()
    if it.supervisor.is_damaged and renew():
        it = _open()
    it.supervisor.ensure()
    return it


def renew() -> bool:
    """Set a damaged store aside, or make a deleted data folder, and open a new store. Returns whether that
    was needed.

    Raises StoreError if the damaged store is still in use.
    """
    with _renewing:  # many sessions may find the damage at once
        it = _open()
        if not it.store.db.is_gone and damage(it.store.db.path, thorough=True) is None:
            return False
        it.supervisor.close()
        visitor.forget_key()  # it was in the folder too
        _open.clear()
        adopt_maps.clear()
        adopt_cell.clear()
        _open()
        return True
