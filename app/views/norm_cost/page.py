"""The Norm cost page: times norms on this machine, while no training runs."""

from __future__ import annotations

import streamlit as st

from normviz import hosted
from normviz.catalog import DEVICES
from normviz.norm_cost import setting as limits
from normviz.norm_cost import stored_results
from normviz.norm_cost.lab import PATIENCE_SECONDS
from normviz.norm_cost.result import Measurement
from normviz.norm_cost.setting import Setting

from ...session import fragments
from ...session.backend import Shared, shared
from ...widgets import link_notices
from ...widgets.buttons import button
from ...widgets.markdown import literal, sentence
from ...widgets.store_errors import guarded
from . import results as costs

TICK_SECONDS = 0.5
WIDTHS = tuple(2**n for n in range(5, 11))
TOKENS = tuple(2**n for n in range(6, 15))
START_SECONDS = 8
"""About the time to load PyTorch, build the models and warm up."""
SHARED = (
    "This server is shared. A timing needs the whole machine, and all training would have to wait, so "
    "nothing is measured here. Below is the measurement that ships with NormViz. To measure your own "
    "machine, run `normviz bench norms` in a terminal."
)


def page() -> None:
    """The page, from top to bottom."""
    back = shared()
    with st.container(key="head"):
        st.markdown(
            "# What does a norm cost? :small[:gray[Time relative to LayerNorm, on this machine.]]"
        )
    link_notices.strange()
    if hosted.limits():
        st.info(SHARED)
    else:
        _controls(back)
    st.fragment(guarded(_status), run_every=TICK_SECONDS if back.lab.state.doing else None)()
    costs.show(_shown(back))


def _controls(back: Shared) -> None:
    """The settings of a measurement, and the buttons."""
    with st.container(key="cost_controls"):
        width, tokens, threads, device = st.columns([3, 3, 2, 2], vertical_alignment="bottom")
        with width:
            _ladder("Width (numbers per token)", "width", WIDTHS, Setting().width)
        with tokens:
            _ladder("Tokens per batch", "tokens", TOKENS, Setting().tokens)
        with threads:
            st.number_input("CPU threads", 1, limits.cores(), 1, key="cost_threads")
        with device:
            st.selectbox(
                "Device", limits.DEVICES, key="cost_device", format_func=DEVICES.label,
                help="The GPU must be in the machine that runs this page's server. Timing on a GPU, by "
                "events on its stream, has not been tried yet.",
            )  # fmt: skip
    setting = _setting()
    busy = bool(back.lab.state.doing)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        button(
            "Measure", _start, back, key="cost_start", type="primary", icon=":material/timer:",
            disabled=busy or isinstance(setting, str),
        )  # fmt: skip
        button("Stop", back.lab.stop, key="cost_stop", icon=":material/stop:", disabled=not busy)
        if isinstance(setting, str):
            st.error(literal(sentence(setting)))
        else:
            seconds = START_SECONDS + max(setting.seconds, setting.needed_seconds)
            st.caption(f"About {seconds:.0f} s. Training on this server waits until then.")


def _ladder(words: str, name: str, values: tuple[int, ...], default: int) -> None:
    st.select_slider(words, values, default, key=f"cost_{name}", format_func=lambda n: f"{n:,}")


def _setting() -> Setting | str:
    """The setting in the widgets, or why it is not allowed."""
    values = {n: st.session_state[f"cost_{n}"] for n in ("width", "tokens", "threads", "device")}
    try:
        return Setting(**values)
    except ValueError as error:
        return str(error)


def _start(back: Shared) -> None:
    setting = _setting()
    if isinstance(setting, Setting):
        back.lab.start(setting)


def _status() -> None:
    """The progress of the measurement, or why it failed. Polls while a measurement runs."""
    lab = shared().lab
    state = lab.state
    with st.container(key="cost_status"):
        if state.doing and state.setting:
            st.progress(state.share, f"{state.setting.text()}: {state.doing}")
        elif state.problem:
            st.warning(f"Nothing was measured: {literal(state.problem)}.")
    fragments.end_timer("cost_busy", bool(state.doing))


def _shown(back: Shared) -> Measurement:
    """The measurement that the visitor chose; by default, and after a new one, the newest.

    A server without a measurement of its own shows the shipped one.
    """
    found = {m.when: m for m in (*stored_results.kept(back.store.folder), stored_results.shipped())}
    newest = next(iter(found))
    finished = back.lab.state.finished
    if st.session_state.get("cost_finished", finished) != finished:
        st.session_state["cost_shown"] = newest
    st.session_state["cost_finished"] = finished
    shipped = stored_results.shipped().when
    if st.session_state.get("cost_shown") not in found:
        st.session_state["cost_shown"] = newest
    when = st.selectbox(
        "Measurement", tuple(found), key="cost_shown",
        format_func=lambda when: found[when].text() + (", shipped" if when == shipped else ""),
        help=f"A measurement waits at most {PATIENCE_SECONDS:g} s for runs that train here",
    )  # fmt: skip
    return found[when]
