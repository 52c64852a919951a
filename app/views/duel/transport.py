"""The buttons that control the lanes' runs (Train, Pause, Step, Stop, Reset, Repeat), and their callbacks.

While nothing trains, Pause, Step and Stop are not shown (see `style.css`); the key S still trains one step.
Train asks first where it ends a run that has trained for some seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import streamlit as st

from normviz.config import ConfigError, seeded
from normviz.limits import SEEDS
from normviz.runs import Run

from ...asgi import live_page
from ...session import duel, training, visitor
from ...session.backend import SharedBackend, known
from ...session.duel import Duel, control, leave, leave_duel, put_aside, trained_long
from ...session.page_state import chosen
from ...widgets.buttons import button
from ...widgets.store_errors import reported
from . import complaint
from . import lanes as page_lanes
from .lanes import Lane
from .values import taken


def show(lanes: list[Lane], backend: SharedBackend) -> None:
    """The row of buttons, and why a run or a setting was refused. It is beside the charts' replay, on a
    phone at the lower edge of the screen."""
    page_duel, opened = duel.duel(), _open(lanes)
    repeating = bool(opened) and not any(lane.run and lane.run.is_open for lane in lanes)
    paused = bool(opened) and all(run.status == "paused" for run in opened)
    others, steers = visitor.why_not(opened), is_busy(lanes)
    state = "transport_busy" if opened else "transport_idle"
    with (
        st.container(key="transport"),
        st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=state),
    ):
        button(
            "Train", train, page_duel, backend, key="train",
            type="secondary" if steers else "primary", icon=":material/play_arrow:",
            shortcut=None if opened else "T",
            help="Train all lanes from their first step. The key S trains one step",
        )  # fmt: skip
        button(
            "Resume" if paused else "Pause", control, page_duel, backend,
            "resume" if paused else "pause",
            key="pause", type="primary" if steers else "secondary",
            icon=f":material/{'resume' if paused else 'pause'}:", shortcut="P", disabled=not steers,
            help=others,
        )  # fmt: skip
        button(
            "Step", step, page_duel, backend, key="step", icon=":material/skip_next:", shortcut="S",
            disabled=repeating or others is not None,
            help=others or "One training step in every lane. Starts the lanes if none runs.",
        )  # fmt: skip
        button(
            "Stop",
            stop,
            page_duel,
            backend,
            key="stop",
            icon=":material/stop:",
            disabled=not steers,
            help=others,
        )
    with st.container(key="problems"):
        for problem in filter(
            None, (page_duel.refused, None if page_duel.refused_in else page_duel.complaint)
        ):
            complaint.say(problem)
        _ask(page_duel, backend)
    _offer(lanes, backend)


def _ask(page_duel: Duel, backend: SharedBackend) -> None:
    """What Train would end, where it was pressed, and the choice."""
    ending = trained_long(_gone(page_duel, backend), backend) if page_duel.asks else []
    page_duel.asks = bool(ending)
    if not ending:
        return
    st.warning(f"This ends {_furthest(ending)}.")
    with st.container(horizontal=True, gap="xsmall"):
        button("Start again", start, page_duel, backend, key="train_again")
        button("Keep training", _keep, page_duel, key="train_on")


def _furthest(runs: Sequence[tuple[Run, int]]) -> str:
    """Runs in words, with the furthest step that one of them has taken."""
    run, at = max(runs, key=lambda pair: pair[1])
    which = "the run at" if len(runs) == 1 else f"{len(runs)} runs, the furthest at"
    return f"{which} step {at:,} of {run.config.steps:,}"


def show_left(backend: SharedBackend) -> None:
    """What was put aside for the duel on the page, and the ways back to it and on."""
    page_duel = duel.duel()
    if page_duel.left is None:
        return
    if page_duel.left.lanes == page_duel.lanes:  # Back led to it
        page_duel.left = None
        return
    left = trained_long(page_duel.left.runs, backend)
    if not left:
        duel.end_left(page_duel, backend)
        st.caption("What was paused with the duel before has ended.")
        return
    with st.container(horizontal=True, vertical_alignment="center", key="left"):
        st.markdown(f"Paused with the duel before: {_furthest(left)}.", width="stretch")
        button("Continue it", duel.go_back, page_duel, backend, key="left_on")
        button("End it", duel.end_left, page_duel, backend, key="left_end")


def _keep(page_duel: Duel) -> None:
    page_duel.asks = False


def _offer(lanes: list[Lane], backend: SharedBackend) -> None:
    """A link to the page that trains in this browser, where a run waits or was refused and the server has
    that page."""
    waits = any(lane.run and lane.run.status == "queued" for lane in lanes)
    if not waits and not duel.duel().refused:
        return
    if (
        address := live_page.address([lane.config for lane in lanes], backend.store.folder)
    ) is not None:
        why = "The server is busy. " if waits else ""
        st.caption(f"{why}[Train on this device]({address}), in a page that needs no server.")


def show_more(lanes: list[Lane], backend: SharedBackend) -> None:
    """Reset, Repeat and the number of lanes."""
    lanes = [lane.without_numbers for lane in lanes]
    page_duel, opened = duel.duel(), _open(lanes)
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        button(
            "Reset", reset, page_duel, backend, key="reset", icon=":material/restart_alt:",
            help="Leave this duel for the one that this page opens with",
        )  # fmt: skip
        shown = page_lanes.all_done(lanes)
        all_seeds = all(len(lane.repeats) == SEEDS for lane in lanes)
        button(
            "Show one seed" if all_seeds else f"Repeat with {SEEDS} seeds", repeat, page_duel,
            backend, key="repeat", icon=":material/repeat:", disabled=bool(opened) or not shown,
            help=f"Train every lane from {SEEDS} seeds, to see how much is chance",
        )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        duel.show(page_duel, "n_lanes", len(lanes))
        st.segmented_control(
            "Lanes", range(1, page_duel.most_lanes + 1), required=True, key="n_lanes",
            on_change=taken(count), args=(page_duel, backend), width="content",
        )  # fmt: skip
        st.session_state.setdefault(training.SWITCH, True)
        st.toggle(
            "Train by itself", key=training.SWITCH, on_change=reported(training.by_itself),
            args=(page_duel, backend), persist_state="session",
            help="After a change of a setting, lanes without a stored result train at once, if that takes "
            f"up to about {training.LONGEST_SECONDS:g} s, on a shared server only while no run "
            "waits. Longer runs need a click on Train.",
        )  # fmt: skip


def _open(lanes: list[Lane]) -> list[Run]:
    """The queued, running and paused runs of the lanes and their repeats."""
    return [run for run in page_lanes.runs(lanes) if run.is_open]


def is_busy(lanes: list[Lane]) -> bool:
    """Whether this visitor has a run of the lanes to pause, step or stop."""
    opened = _open(lanes)
    return bool(opened) and visitor.why_not(opened) is None


def count(page_duel: Duel, backend: SharedBackend) -> None:
    """Change the number of lanes. The visitor's runs in lanes that are removed are put aside."""
    n = chosen("n_lanes")
    put_aside(page_duel, backend, page_duel.runs[n:])
    duel.set_lane_count(page_duel, n)
    _prune(page_duel, backend)
    training.by_itself(page_duel, backend)


def train(page_duel: Duel, backend: SharedBackend) -> None:
    """Start all lanes, at once or after a question."""
    if trained_long(_gone(page_duel, backend), backend):
        page_duel.asks = True
    else:
        start(page_duel, backend)


def _gone(page_duel: Duel, backend: SharedBackend) -> tuple[int, ...]:
    """The runs that this visitor started, and that end where all lanes start."""
    return tuple(
        run
        for run in (*page_duel.runs, *_stale(page_duel, backend))
        if run is not None and run in page_duel.mine
    )


def start(page_duel: Duel, backend: SharedBackend, paused: bool = False) -> None:
    """Queue a run for every lane. Stops the runs that this visitor started before."""
    gone = _gone(page_duel, backend)
    page_duel.asks = False
    page_duel.refused_in = ""  # what trains is without that value, which is said beside Train
    queued = training.queue(page_duel, page_duel.lanes, backend, paused, gone)
    if queued is None:
        return
    leave(page_duel, backend, gone)
    page_duel.extra -= set(gone)
    page_duel.runs = tuple(queued)
    page_duel.automatic = frozenset()
    page_duel.restart("follow")
    page_duel.link, page_duel.notices, page_duel.asked = None, (), True


def repeat(page_duel: Duel, backend: SharedBackend) -> None:
    """Queue the missing runs of every lane's next seeds. If none is missing, return to one seed."""
    try:
        configs = [config for lane in page_duel.lanes for config in seeded(lane, SEEDS)[1:]]
    except ConfigError as error:
        page_duel.refused = f"there are no {SEEDS} seeds from here: {error}"
        return
    stored = {config: known(config, backend) for config in configs}
    if page_duel.seeds > 1 and all(run is not None and run.is_done for run in stored.values()):
        page_duel.seeds = 1
        return
    lacking = [c for c, run in stored.items() if run is None or not (run.is_done or run.is_open)]
    queued = training.queue(page_duel, lacking, backend)
    if queued is None:
        return
    page_duel.seeds, page_duel.asked = SEEDS, True
    page_duel.extra |= page_duel.mine.intersection(queued)


def _prune(page_duel: Duel, backend: SharedBackend) -> None:
    """Stop this visitor's repeats of configs that no lane has any more."""
    stale = _stale(page_duel, backend)
    leave(page_duel, backend, stale)
    page_duel.extra = frozenset(
        number
        for number in page_duel.extra.difference(stale)
        if (run := backend.store.run(number)) and run.is_open
    )


def _stale(page_duel: Duel, backend: SharedBackend) -> tuple[int, ...]:
    """The open repeats of configs that no lane has any more."""
    records = [
        run for number in page_duel.extra if (run := backend.store.run(number)) and run.is_open
    ]
    wanted: set[str] = set()
    for lane in page_duel.lanes:
        with suppress(ConfigError):
            wanted |= {config.key for config in seeded(lane, SEEDS)}
    return tuple(run.id for run in records if run.key not in wanted)


def stop(page_duel: Duel, backend: SharedBackend) -> None:
    """Stop the lanes' runs, and the repeats that this visitor started."""
    control(page_duel, backend, "stop")
    page_duel.extra = frozenset()


def step(page_duel: Duel, backend: SharedBackend) -> None:
    """Train one step of the open runs, or of new runs that then pause."""
    records = [backend.store.run(run) for run in page_duel.runs if run is not None]
    if not any(record and record.is_open for record in records):
        start(page_duel, backend, paused=True)
    page_duel.restart("follow")
    control(page_duel, backend, "step")


def reset(page_duel: Duel, backend: SharedBackend) -> None:
    """Leave this duel for the hero preset."""
    leave_duel(page_duel, backend)
    duel.reset(page_duel)
