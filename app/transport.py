"""Train, Pause, Step, Stop, Reset: what a visitor asks of the lanes' runs."""

from __future__ import annotations

import state
import streamlit as st
from backend import Shared
from lanes import Lane

from normviz.limits import MAX_LANES
from normviz.links import encode


def show(lanes: list[Lane], shared: Shared) -> None:
    """The row of buttons."""
    opened = [lane for lane in lanes if lane.run is not None and lane.run.is_open]
    paused = bool(opened) and all(lane.run and lane.run.status == "paused" for lane in opened)
    changed = not all(lane.is_current for lane in lanes)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = "Train (settings changed)" if changed and not opened else "Train"
        st.button(
            label, key="train", type="primary", icon=":material/play_arrow:", shortcut="T",
            on_click=train, args=(shared,), help="Train all lanes from their first step",
        )  # fmt: skip
        st.button(
            "Resume" if paused else "Pause", key="pause", icon=":material/pause:", shortcut="P",
            on_click=ask, args=(shared, "resume" if paused else "pause"), disabled=not opened,
        )  # fmt: skip
        st.button(
            "Step", key="step", icon=":material/skip_next:", on_click=step, args=(shared,),
            help="One training step of every lane; starts them if none runs", shortcut="S",
        )  # fmt: skip
        st.button(
            "Stop", key="stop", icon=":material/stop:", on_click=ask, args=(shared, "stop"),
            disabled=not opened,
        )  # fmt: skip
        st.button(
            "Reset", key="reset", icon=":material/restart_alt:", on_click=back, args=(shared,),
            help="Stop, and back to the duel this page opens with",
        )  # fmt: skip
        st.session_state["n_lanes"] = len(lanes)
        st.segmented_control(
            "Lanes", range(1, MAX_LANES + 1), required=True, key="n_lanes", on_change=count,
            format_func=lambda n: f"{n} lane{'s' * (n > 1)}", label_visibility="collapsed",
        )  # fmt: skip


def count() -> None:
    """Another number of lanes."""
    state.set_lane_count(st.session_state["n_lanes"])


def train(shared: Shared, paused: bool = False) -> None:
    """Queue every lane; what ran before in these lanes is stopped."""
    ask(shared, "stop")
    it = state.duel()
    it.runs = tuple(shared.store.enqueue(config, paused) for config in it.lanes)
    it.following, it.replay, it.cursor, it.turned = True, None, 0, frozenset()
    it.link, it.notices = None, ()
    st.query_params.from_dict(dict(pair.split("=", 1) for pair in encode(it.lanes).split("&")))


def ask(shared: Shared, action: str) -> None:
    """Send a request to every open run of this duel."""
    for run in state.duel().runs:
        if run is not None and (record := shared.store.run(run)) and record.is_open:
            shared.store.control(run, action)  # pyright: ignore[reportArgumentType]


def step(shared: Shared) -> None:
    """One step: of the open runs, or of new ones that then wait."""
    it = state.duel()
    records = [shared.store.run(run) for run in it.runs if run is not None]
    if not any(record and record.is_open for record in records):
        train(shared, paused=True)
    it.following, it.replay = True, None
    ask(shared, "step")


def back(shared: Shared) -> None:
    """Stop and return to the hero."""
    ask(shared, "stop")
    state.reset()
