"""The buttons that control the lanes' runs (Train, Pause, Step, Stop, Reset, Repeat), and their callbacks.

While nothing trains, Pause, Step and Stop are not shown (see `style.css`); the key S still trains one step.
Train asks first where it ends a run that has trained for some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from normviz import hosted
from normviz.config import ConfigError
from normviz.limits import SEEDS
from normviz.runs.seeds import seeded
from normviz.runs.store import Run

from ...asgi import live_page
from ...session import duel, training, visitor
from ...session.backend import SharedBackend
from ...session.duel import Duel, control, leave, leave_duel
from ...session.page_state import chosen
from ...widgets import page_links
from ...widgets.buttons import button
from ...widgets.store_errors import kept
from . import complaint
from . import lanes as page_lanes
from .lanes import Lane

ASKS_SECONDS = 10.0
"""Seconds since a run has started, from which on Train asks before it ends that run."""


def show(lanes: list[Lane], backend: SharedBackend) -> None:
    """The row of buttons, and why a run or a setting was refused. It is beside the charts' replay, on a
    phone at the lower edge of the screen."""
    it, opened = duel.duel(), _open(lanes)
    repeating = bool(opened) and not any(lane.run and lane.run.is_open for lane in lanes)
    paused = bool(opened) and all(run.status == "paused" for run in opened)
    changed = any(lane.run and not lane.is_current for lane in lanes)
    others, steers = visitor.why_not(opened), is_busy(lanes)
    state = "transport_busy" if opened else "transport_idle"
    with (
        st.container(key="transport"),
        st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=state),
    ):
        button(
            "Train (settings changed)" if changed and not opened else "Train", train, it, backend,
            key="train", type="secondary" if steers else "primary", icon=":material/play_arrow:",
            shortcut=None if opened else "T",
            help="Train all lanes from their first step. The key S trains one step",
        )  # fmt: skip
        button(
            "Resume" if paused else "Pause", control, it, backend,
            "resume" if paused else "pause",
            key="pause", type="primary" if steers else "secondary",
            icon=f":material/{'resume' if paused else 'pause'}:", shortcut="P", disabled=not steers,
            help=others,
        )  # fmt: skip
        button(
            "Step", step, it, backend, key="step", icon=":material/skip_next:", shortcut="S",
            disabled=repeating or others is not None,
            help=others or "One training step in every lane. Starts the lanes if none runs.",
        )  # fmt: skip
        button(
            "Stop",
            stop,
            it,
            backend,
            key="stop",
            icon=":material/stop:",
            disabled=not steers,
            help=others,
        )
    with st.container(key="problems"):
        for problem in filter(None, (it.refused, None if it.refused_in else it.complaint)):
            complaint.say(problem)
        _ask(it, backend)
    _offer(lanes, backend)


def _ask(it: Duel, backend: SharedBackend) -> None:
    """What Train would end, where it was pressed, and the choice."""
    ending = _long(_gone(it, backend), backend) if it.asks else []
    it.asks = bool(ending)
    if not ending:
        return
    run, at = max(ending, key=lambda one: one[1])
    which = "the run at" if len(ending) == 1 else f"{len(ending)} runs, the furthest at"
    st.warning(f"This ends {which} step {at:,} of {run.config.steps:,}.")
    with st.container(horizontal=True, gap="xsmall"):
        button("Start again", start, it, backend, key="train_again")
        button("Keep training", _keep, it, key="train_on")


def _keep(it: Duel) -> None:
    it.asks = False


def _offer(lanes: list[Lane], backend: SharedBackend) -> None:
    """A link to the page that trains in this browser, where a run waits and the server has that page."""
    waits = any(lane.run and lane.run.status == "queued" for lane in lanes)
    if not waits and not duel.duel().refused:
        return
    if (
        address := live_page.address([lane.config for lane in lanes], backend.store.folder)
    ) is not None:
        st.caption(
            f"The server is busy. [Train on this device]({address}), in a page that needs no server."
        )


def show_more(lanes: list[Lane], backend: SharedBackend) -> None:
    """Reset, Repeat and the number of lanes."""
    it, opened = duel.duel(), _open(lanes)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        button(
            "Reset", reset, it, backend, key="reset", icon=":material/restart_alt:",
            help="Stop, and return to the duel that this page opens with",
        )  # fmt: skip
        shown = page_lanes.all_done(lanes)
        all_seeds = all(len(lane.repeats) == SEEDS for lane in lanes)
        button(
            "Show one seed" if all_seeds else f"Repeat with {SEEDS} seeds", repeat, it,
            backend, key="repeat", icon=":material/repeat:", disabled=bool(opened) or not shown,
            help=f"Train every lane from {SEEDS} seeds, to see how much is chance",
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        duel.show(it, "n_lanes", len(lanes))
        st.segmented_control(
            "Lanes", range(1, it.most_lanes + 1), required=True, key="n_lanes", on_change=kept(count),
            args=(it, backend), width="content",
        )  # fmt: skip
        st.session_state.setdefault(training.SWITCH, True)
        shared_server = " and no run waits in the queue" if hosted.limits() else ""
        st.toggle(
            "Train by itself", key=training.SWITCH, on_change=kept(training.by_itself),
            args=(it, backend), persist_state="session",
            help="After a change of a setting, lanes without a stored result train at once, if that takes "
            f"up to about {training.LONGEST_SECONDS:g} s{shared_server}. Longer runs need a click on Train.",
        )  # fmt: skip
        st.page_link(page_links.named("Runs"), label="Earlier runs")


def _open(lanes: list[Lane]) -> list[Run]:
    """The queued, running and paused runs of the lanes and their repeats."""
    return [run for run in page_lanes.runs(lanes) if run.is_open]


def is_busy(lanes: list[Lane]) -> bool:
    """Whether this visitor has a run of the lanes to pause, step or stop."""
    opened = _open(lanes)
    return bool(opened) and visitor.why_not(opened) is None


def count(it: Duel, backend: SharedBackend) -> None:
    """Change the number of lanes. Stops the visitor's runs in lanes that are removed."""
    n = chosen("n_lanes")
    leave(it, backend, it.runs[n:])
    duel.set_lane_count(it, n)
    _prune(it, backend)
    training.by_itself(it, backend)


def train(it: Duel, backend: SharedBackend) -> None:
    """Start all lanes, at once or after a question."""
    if _long(_gone(it, backend), backend):
        it.asks = True
    else:
        start(it, backend)


def _gone(it: Duel, backend: SharedBackend) -> tuple[int, ...]:
    """The runs that this visitor started, and that end where all lanes start."""
    return tuple(
        run for run in (*it.runs, *_stale(it, backend)) if run is not None and run in it.mine
    )


def _long(runs: Sequence[int], backend: SharedBackend) -> list[tuple[Run, int]]:
    """Those of the runs that have trained for some seconds, with their last steps."""
    found = [run for number in runs if (run := backend.store.run(number)) and run.is_open]
    return [
        (run, at)
        for run in found
        if time.time() - (run.started or time.time()) >= ASKS_SECONDS
        and (at := page_lanes.last_step(run, backend)) is not None
    ]


def start(it: Duel, backend: SharedBackend, paused: bool = False) -> None:
    """Queue a run for every lane. Stops the runs that this visitor started before."""
    gone = _gone(it, backend)
    it.asks = False
    queued = training.queue(it, it.lanes, backend, paused, gone)
    if queued is None:
        return
    leave(it, backend, gone)
    it.extra -= set(gone)
    it.runs = tuple(queued)
    it.automatic = frozenset()
    it.restart("follow")
    it.link, it.notices, it.asked = None, (), True


def repeat(it: Duel, backend: SharedBackend) -> None:
    """Queue the missing runs of every lane's next seeds. If none is missing, return to one seed."""
    try:
        configs = [config for lane in it.lanes for config in seeded(lane, SEEDS)[1:]]
    except ConfigError as error:
        it.refused = f"there are no {SEEDS} seeds from here: {error}"
        return
    known = {config: backend.store.latest(config.key) for config in configs}
    if it.seeds > 1 and all(run is not None and run.is_done for run in known.values()):
        it.seeds = 1
        return
    lacking = [c for c, run in known.items() if run is None or not (run.is_done or run.is_open)]
    queued = training.queue(it, lacking, backend)
    if queued is None:
        return
    it.seeds, it.asked = SEEDS, True
    it.extra |= it.mine.intersection(queued)


def _prune(it: Duel, backend: SharedBackend) -> None:
    """Stop this visitor's repeats of configs that no lane has any more."""
    stale = _stale(it, backend)
    leave(it, backend, stale)
    it.extra = frozenset(
        number
        for number in it.extra.difference(stale)
        if (run := backend.store.run(number)) and run.is_open
    )


def _stale(it: Duel, backend: SharedBackend) -> tuple[int, ...]:
    """The open repeats of configs that no lane has any more."""
    records = [run for number in it.extra if (run := backend.store.run(number)) and run.is_open]
    wanted: set[str] = set()
    for lane in it.lanes:
        with suppress(ConfigError):
            wanted |= {config.key for config in seeded(lane, SEEDS)}
    return tuple(run.id for run in records if run.key not in wanted)


def stop(it: Duel, backend: SharedBackend) -> None:
    """Stop the lanes' runs, and the repeats that this visitor started."""
    control(it, backend, "stop")
    it.extra = frozenset()


def step(it: Duel, backend: SharedBackend) -> None:
    """Train one step of the open runs, or of new runs that then pause."""
    records = [backend.store.run(run) for run in it.runs if run is not None]
    if not any(record and record.is_open for record in records):
        start(it, backend, paused=True)
    it.restart("follow")
    control(it, backend, "step")


def reset(it: Duel, backend: SharedBackend) -> None:
    """Stop, and return to the hero preset."""
    leave_duel(it, backend)
    duel.reset(it)
