"""Training without a click: after a change of a setting, a short duel trains what no stored run shows.

Only a visitor's own change of a setting starts it: not a link, a preset, a tour step or Back. It trains
the lanes that have no result. A change while it trains replaces it. A run that was started with Train is
never replaced by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import streamlit as st

from normviz import hosted
from normviz.config import RunConfig, estimated_seconds
from normviz.execution.budget import default_slots
from normviz.hosted import Refused
from normviz.model import texts
from normviz.training import text_privacy

from ...session import duel, fragments, visitor
from ...session.backend import SharedBackend
from ...widgets.store_errors import guarded
from . import tour
from .lanes import Lane

LONGEST_SECONDS = 5.0
"""Estimated seconds that the runs together may take here."""
SETTLED_SECONDS = 0.4
"""Seconds without another change before training starts."""
TICK_SECONDS = 0.2
SWITCH = "trains_by_itself"

Queue = Callable[[Sequence[RunConfig], SharedBackend, bool, Sequence[int]], list[int] | None]
"""Queues configs for the visitor, instead of some open runs; None where the server refuses."""


def is_on() -> bool:
    """Whether this visitor lets short duels train by themselves."""
    return st.session_state.get(SWITCH, True)


def seconds(configs: Sequence[RunConfig]) -> float:
    """Estimated seconds until all of these runs have ended here, if nothing else trains."""
    each = [estimated_seconds(config) for config in configs]
    return max(*each, sum(each) / default_slots())


def wanted(lanes: list[Lane], backend: SharedBackend) -> tuple[RunConfig, ...]:
    """The configs that will train in a moment without a click; empty where a click is needed."""
    it = duel.duel()
    if it.changed is None or not is_on() or tour.waits(it):
        return ()
    configs = tuple(dict.fromkeys(lane.config for lane in lanes if not _has_result(lane)))
    if not configs or seconds(configs) > LONGEST_SECONDS:
        return ()
    if _is_busy(backend):
        it.changed = None  # its end must not start other runs
        return ()
    return configs if _is_allowed(configs, backend) else ()


def _has_result(lane: Lane) -> bool:
    return lane.is_current and lane.run is not None and (lane.run.is_done or lane.run.is_open)


def _is_busy(backend: SharedBackend) -> bool:
    """Whether the duel has an open run that did not start by itself, or that the visitor paused."""
    it = duel.duel()
    opened = [run for n in (*it.runs, *it.extra) if n and (run := backend.store.run(n))]
    return any(
        run.is_open and (run.id not in it.automatic or run.status == "paused") for run in opened
    )


def _is_allowed(configs: Sequence[RunConfig], backend: SharedBackend) -> bool:
    """Whether this server takes these runs; a shared one only where no other run waits."""
    try:
        hosted.check_lanes(len(duel.duel().lanes))
        hosted.check(configs)
        texts.check(configs, visitor.me())
        text_privacy.check(configs)
    except Refused:
        return False
    return hosted.limits() is None or set(backend.store.queued()) <= duel.duel().automatic


def show(lanes: list[Lane], backend: SharedBackend, queue: Queue) -> None:
    """The switch, and a timer while settings have changed that will train by themselves."""
    duel.show("by_itself", is_on())
    shared_server = " and no run waits in the queue" if hosted.limits() else ""
    st.toggle(
        "Train by itself", key="by_itself", on_change=_switch,
        help="After a change of a setting, lanes without a stored result train at once, if that takes "
        f"up to about {LONGEST_SECONDS:g} s{shared_server}. Longer runs need a click on Train.",
    )  # fmt: skip
    soon = duel.duel().soon
    st.fragment(guarded(_tick), run_every=TICK_SECONDS if soon else None)(lanes, backend, queue)


def _switch() -> None:
    """Keep the choice. Turned on, it also trains what was changed before."""
    st.session_state[SWITCH] = on = st.session_state["by_itself"]
    duel.duel().changed = time.monotonic() if on else None


def _tick(lanes: list[Lane], backend: SharedBackend, queue: Queue) -> None:
    """Start the runs once the settings have not changed for a moment."""
    it = duel.duel()
    if not fragments.runs_alone() or it.changed is None:
        return
    if time.monotonic() - it.changed < SETTLED_SECONDS:
        return
    # What was allowed when the page was rendered may have changed since.
    if it.lanes == tuple(lane.config for lane in lanes) and (configs := wanted(lanes, backend)):
        _start(configs, backend, queue)
    it.changed = None
    st.rerun()


def _start(configs: Sequence[RunConfig], backend: SharedBackend, queue: Queue) -> None:
    """Queue the configs, and show their runs in the lanes that have these settings."""
    it = duel.duel()
    before = tuple(it.automatic)
    runs = queue(configs, backend, False, before)
    if runs is None:
        it.refused = None  # nobody asked: the page offers Train
        return
    new = dict(zip(configs, runs, strict=True))
    duel.leave(backend, before)
    it.automatic = frozenset(runs)
    it.runs = tuple(new.get(c, run) for c, run in zip(it.lanes, it.runs, strict=True))
    duel.begin("follow")
