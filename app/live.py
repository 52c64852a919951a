"""The part that moves: progress, the step cursor, and the charts, in one fragment.

The charts' specs stay the same from tick to tick and only their data changes, which is what keeps
them from flickering (the numbers are in `normviz.charts`).
"""

from __future__ import annotations

import time
from collections import deque

import lanes as page_lanes
import state
import streamlit as st
from backend import Shared, shared
from lanes import Lane

from normviz import charts
from normviz.catalog import PROBES
from normviz.frames import LaneFrame
from normviz.limits import estimated_seconds

TICK_SECONDS = 0.12
PACE_SECONDS = 3.0
SAME_PRESS_SECONDS = 0.3
"""A press of a button inside the fragment may come twice (see `clicks`), and this one toggles."""


def show(lanes: list[Lane]) -> None:
    """Start the fragment; it ticks while something moves and is still otherwise."""
    moving = state.duel().replay is not None or any(_is_open(lane) for lane in lanes)
    st.fragment(_tick, run_every=TICK_SECONDS if moving else None)()


def _is_open(lane: Lane) -> bool:
    return lane.run is not None and lane.run.is_open


def _signature(lanes: list[Lane]) -> tuple[object, ...]:
    """What the rest of the page shows of the runs: when it changes, the whole page is due."""
    return tuple((lane.run.id, lane.run.status, lane.run.key) for lane in lanes if lane.run)


def _tick() -> None:
    it, back = state.duel(), shared()
    lanes = page_lanes.current(it, back)
    signature = _signature(lanes)
    stood_still = it.replay is None
    seen = st.session_state.setdefault("signature", signature)
    with st.container(key="live"):
        _draw(it, lanes, back)
    ended_replay = it.replay is None and not stood_still
    if seen != signature or ended_replay:
        st.session_state["signature"] = signature
        st.rerun()


def _draw(it: state.Duel, lanes: list[Lane], back: Shared) -> None:
    trained = [lane for lane in lanes if lane.run is not None]
    frames = [
        back.frames.lane(lane.run, lane.label, it.probe) for lane in trained if lane.run is not None
    ]
    _progress(lanes, frames, back)
    if not frames:
        seconds = sum(estimated_seconds(lane.config) for lane in lanes)
        st.info(f"Nobody has run this yet on this server. Press Train: about {seconds:.0f} s.")
        return
    last = max(frame.steps for frame in frames) - 1
    reached = max(len(frame.loss) for frame in frames) - 1
    if it.following:
        it.cursor = max(0, reached)
        it.following = any(_is_open(lane) for lane in lanes)
    it.cursor = min(state.replay_cursor(it, last), last)
    _cursor(it, last)
    _charts(it, trained, frames)


def _progress(lanes: list[Lane], frames: list[LaneFrame], back: Shared) -> None:
    """Steps done, steps per second, time left; or that the engine is still warming up."""
    opened = [lane.run for lane in lanes if lane.run is not None and lane.run.is_open]
    if not opened:
        return
    _, warm = back.store.supervisor()
    done = sum(len(frame.loss) for frame in frames)
    total = sum(frame.steps for frame in frames)
    began = [run.started for run in opened if run.started is not None]
    if not began:
        words = (
            "Waiting for a free worker" if warm else "Loading PyTorch in a worker: a few seconds"
        )
    else:
        rate = _rate(done)
        words = f"{done} of {total} steps in all lanes"
        if rate > 0:
            words += f", {rate:.0f} steps/s, about {(total - done) / rate:.0f} s left"
        if all(run.status == "paused" for run in opened):
            words = f"Paused at {done} of {total} steps in all lanes"
    st.progress(min(1.0, done / total), words)


def _rate(done: int) -> float:
    """Steps a second over the last few seconds; 0 while that is not known."""
    seen = st.session_state.setdefault("pace", deque())
    now = time.monotonic()
    if seen and done < seen[-1][1]:
        seen.clear()  # another run
    seen.append((now, done))
    while now - seen[0][0] > PACE_SECONDS and len(seen) > 2:
        seen.popleft()
    (since, before), (until, after) = seen[0], seen[-1]
    return (after - before) / (until - since) if until - since > 0.2 else 0.0


def _cursor(it: state.Duel, last: int) -> None:
    """Which quantity bars and heatmaps show, and the step that they show: a slider, and play."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="cursor_row"):
        st.session_state["probe"] = it.probe
        st.selectbox(
            "Quantity", PROBES.keys(), key="probe", format_func=PROBES.label, width=240,
            on_change=_set_probe,
        )  # fmt: skip
        playing = it.replay is not None
        st.button(
            "Pause" if playing else "Replay", key="replay", on_click=_replay, args=(last,),
            icon=":material/pause_circle:" if playing else ":material/replay:", width=110,
            help="Moves the step cursor by itself; training is not repeated",
        )  # fmt: skip
        if last > 0:
            st.session_state["cursor"] = it.cursor
            it.given.append(it.cursor)
            # A label that changed with the step would make it another widget at every tick.
            st.slider("Step", 0, last, key="cursor", on_change=_moved, width="stretch")
    record = PROBES[it.probe]
    st.caption(f"{record.definition} ({record.source})")


def _set_probe() -> None:
    state.duel().probe = st.session_state["probe"]


def _replay(last: int) -> None:
    it, now = state.duel(), time.monotonic()
    if now - st.session_state.get("replay_pressed", 0.0) < SAME_PRESS_SECONDS:
        return
    st.session_state["replay_pressed"] = now
    if it.replay is None:
        start = 0 if it.cursor >= last else it.cursor
        it.replay, it.following = (now, start), False
    else:
        it.replay = None
    st.session_state["signature"] = None  # the fragment's timer starts or ends with a full run


def _moved() -> None:
    """A visitor moved the slider. While it moves by itself, the browser also sends back positions
    that it was given a tick or two ago; those are not a visitor's."""
    it, position = state.duel(), st.session_state["cursor"]
    if (it.replay is None and not it.following) or position not in it.given:
        it.cursor, it.following, it.replay = position, False, None


def _charts(it: state.Duel, lanes: list[Lane], frames: list[LaneFrame]) -> None:
    dark = st.context.theme.type == "dark"
    finished = not any(_is_open(lane) for lane in lanes)
    record = PROBES[it.probe]
    domain = charts.quantised_domain(record, frames, live=not finished)
    styles = charts.lane_styles(tuple(frame.scheme for frame in frames))
    left, right = st.columns(2)
    with left:
        st.markdown("**Training loss** (nats per token, 1 seed)")
        st.vega_lite_chart(
            charts.loss.chart(frames, it.cursor, dark), key="loss", width="stretch",
            on_select="rerun", selection_mode=[charts.ZOOM],
            alt=charts.loss.finding(frames) if finished else "Loss curves, training now",
        )  # fmt: skip
    with right:
        st.markdown(f"**{record.label} in each layer**")
        st.vega_lite_chart(
            charts.bars.chart(frames, it.cursor, domain, dark), key="bars", width="stretch",
            alt=charts.bars.finding(frames) if finished else "Bars per layer, training now",
        )  # fmt: skip
    buffers = st.session_state.setdefault("buffers", [charts.Buffer() for _ in state.NAMES])
    grid = [column for _ in range(0, len(frames), 2) for column in st.columns(2)]
    if len(frames) == 1:
        grid = [st.container()]
    for lane, frame, style, column in zip(lanes, frames, styles, grid, strict=False):
        with column:
            st.vega_lite_chart(
                charts.heatmap.chart(
                    frame, it.cursor, domain, buffers[lane.index],
                    style=style, dark=dark, finished=finished and it.replay is None,
                ),
                key=f"heatmap_{lane.index}", width="stretch",
                alt=charts.heatmap.finding(frame) if finished else "Heatmap, training now",
            )  # fmt: skip
