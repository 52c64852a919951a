"""What all sessions of this server share: the store, its readers, and the supervisor's client."""

from __future__ import annotations

import gc
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from streamlit import runtime

from normviz.config import RunConfig
from normviz.execution.client import SupervisorClient
from normviz.runs import Run, shipped
from normviz.runs.frames import Frames
from normviz.runs.listing import RunList
from normviz.runs.shipped import adopt
from normviz.runs.store import Store, StoreFull
from normviz.runs.store.repair import damage
from normviz.runs.store.repair import opened as open_store

from . import visitor
from .open_pages import OpenPages
from .policy import policy


@dataclass(frozen=True)
class SharedBackend:
    """The server's store, its readers, and the clients of everything that runs in other processes."""

    store: Store
    frames: Frames
    run_list: RunList
    supervisor: SupervisorClient
    watchers: OpenPages


@dataclass
class _Server:
    """What this server has as long as it runs. Not in Streamlit's cache: any browser can clear that.

    folder    the store's, once the store was opened; kept when a damaged store is set aside
    problems  warnings about the store for every visitor: sentences without a full stop
    """

    backend: SharedBackend | None = None
    folder: Path | None = None
    problems: list[str] = field(default_factory=list)


_server = _Server()
_lock = threading.RLock()


def forget() -> None:
    """Begin as a server that just started: for tests, each of which has a store of its own."""
    global _server
    _server = _Server()


def problems() -> list[str]:
    """Warnings about the store for every visitor: sentences without a full stop."""
    return _server.problems


def folder() -> Path | None:
    """The store's folder; None before the store is opened."""
    return _server.folder


def _open() -> SharedBackend:
    if (shared_backend := _server.backend) is not None:
        return shared_backend
    with _lock:
        shared_backend = _server.backend = _server.backend or _made()
        return shared_backend


def _made() -> SharedBackend:
    store, problem = open_store(again=folder() is not None, policy=policy())
    _server.folder = store.folder
    if problem is not None:
        _server.problems.append(problem)
        print(f"normviz: {problem}.", file=sys.stderr, flush=True)
    try:
        adopt(store)
    except StoreFull as error:  # the runs that are stored can still be read
        print(f"normviz: {error}", file=sys.stderr, flush=True)
    gc.collect()
    gc.freeze()  # modules stay for good: later collections skip them
    if store.policy.is_shared:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no visitor's run takes its GPU
    return SharedBackend(
        store,
        Frames(store, store.policy.steps_bytes),
        RunList(store),
        SupervisorClient(store),
        OpenPages(store, _is_open),
    )


def _is_open(session: str) -> bool:
    """Whether a page is still connected; Streamlit notices a closed one within seconds."""
    return runtime.exists() and runtime.get_instance().is_active_session(session)


def opened() -> SharedBackend:
    """The shared back end, for what only reads: it starts no supervisor."""
    shared_backend = _open()
    return _open() if shared_backend.store.db.is_gone and renew() else shared_backend


def watchers() -> OpenPages:
    """The server's record of which pages show which runs."""
    return opened().watchers


def known(config: RunConfig, backend: SharedBackend) -> Run | None:
    """The stored run of a config. A cell of a shipped map or claim is added to the store first."""
    run = backend.store.latest(config.key)
    if run is None and config.key in shipped.cell_keys():
        with _lock:  # many sessions may need it at once
            shipped.adopt_cells(backend.store, {config.key})
        run = backend.store.latest(config.key)
    return run


def shared() -> SharedBackend:
    """The shared back end. Starts the supervisor if none is alive."""
    shared_backend = opened()
    if shared_backend.supervisor.is_damaged and renew():
        shared_backend = _open()
    shared_backend.supervisor.ensure()
    return shared_backend


def renew() -> bool:
    """Set a damaged store aside, or make a deleted data folder, and open a new store. Returns whether that
    was needed.

    Raises StoreError if the damaged store is still in use.
    """
    with _lock:  # many sessions may find the damage at once
        shared_backend = _open()
        if (
            not shared_backend.store.db.is_gone
            and damage(shared_backend.store.db.path, thorough=True) is None
        ):
            return False
        shared_backend.supervisor.close()
        visitor.forget_key()  # it was in the folder too
        _server.backend = None
        _open()
        return True
