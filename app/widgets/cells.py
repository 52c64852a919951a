"""The cells of a map, a claim or an assignment: asked for, shown while they are open, and stopped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from normviz.config import RunConfig
from normviz.formats import duration
from normviz.policy import Kind, Refused
from normviz.runs.store import cells
from normviz.runs.store.cells import OpenCells

from ..session import presence, visitor
from ..session.backend import SharedBackend
from ..session.markdown import literal, sentence
from ..session.page_state import PageState
from .buttons import button

TICK_SECONDS = 0.5
"""After which a page that shows open cells looks again how far they are."""


def opened(keys: Collection[str], backend: SharedBackend) -> OpenCells | None:
    """The cells among these keys that wait or train, whoever asked for them; None where none does. The page
    counts as showing them."""
    shown = cells.opened(backend.store, [*keys], visitor.me())
    presence.cells(shown)
    return shown


def ask(
    page_state: PageState,
    configs: Sequence[RunConfig],
    kind: Kind,
    backend: SharedBackend,
    lab: str = "",
) -> None:
    """Queue cells for this visitor. Where the server refuses them, `page_state` has why."""
    page_state.refused = None
    try:
        cells.ask(backend.store, configs, kind, visitor.me(), visitor.address(), lab)
    except Refused as why:
        page_state.refused = sentence(str(why))


def stop_button(
    shown: OpenCells | None, keys: Collection[str], backend: SharedBackend, key: str, again: str
) -> None:
    """A button that stops the open cells, where this visitor may. `again` says how to go on."""
    if shown is not None and shown.may_stop:
        button("Stop", _stop, keys, backend, key=key, icon=":material/stop:",
               help=f"Finished runs are kept. {again} to continue.")  # fmt: skip


def _stop(keys: Collection[str], backend: SharedBackend) -> None:
    cells.stop(backend.store, [*keys], visitor.me())


def progress(shown: OpenCells, missing: int, total: int) -> None:
    """A bar: of `total` runs so many are `missing`. While none of them trains, what they wait for."""
    if not shown.running:
        n = shown.before
        st.caption(
            f"Waits for {n} run{'s' * (n > 1)} of another map or claim."
            if n
            else "Waits for a process that trains: a few seconds."
        )
        return
    left = duration(shown.seconds)
    done = max(0, total - missing)
    st.progress(min(1.0, done / total), f"{done} of {total} runs, about {left} left")


def failures(keys: Collection[str], backend: SharedBackend, again: str) -> None:
    """Why cells failed, each sentence once. `again` says how to retry."""
    for why in cells.failures(backend.store, [*keys]):
        st.error(f"{literal(sentence(f'a run failed: {why}'))} {again} to retry.")
