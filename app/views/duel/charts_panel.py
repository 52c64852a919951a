"""The charts of the lanes' runs, or a sentence if no lane has a run yet."""

from __future__ import annotations

import streamlit as st

from normviz import hosted, texts
from normviz.limits import estimated_seconds

from ...session import visitor
from ...session.backend import Shared
from ...widgets.buttons import button
from ...widgets.markdown import capital, literal
from . import player, transport
from .lanes import Lane


def show(lanes: list[Lane], shared: Shared) -> None:
    """The charts. Their numbers come through a WebSocket (see `numbers_socket`), without a script run."""
    with st.container(key="before"):
        if earlier := [lane for lane in lanes if lane.earlier]:
            _before(earlier, shared)
    with st.container(key="live"):
        if any(lane.run is not None for lane in lanes):
            player.show(lanes)
        else:
            st.info(f"Nobody has run this yet on this server. {_what_now(lanes)}.")


def _before(lanes: list[Lane], shared: Shared) -> None:
    """A warning that curves show earlier settings, and a Train button."""
    named = "; ".join(f"{lane.name}: {lane.earlier}" for lane in lanes)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/history: **Faded curves show earlier settings** ({literal(named)}). Train "
            "replaces them.",
            width="stretch",
        )
        button(
            "Train", transport.train, shared, key="train_before", type="primary",
            icon=":material/play_arrow:",
        )  # fmt: skip


def _what_now(lanes: list[Lane]) -> str:
    configs = [lane.config for lane in lanes]
    try:
        hosted.check(configs)
        texts.check(configs, visitor.me())
    except hosted.Refused as why:
        return capital(str(why))
    return f"Press Train: about {sum(map(estimated_seconds, configs)):.0f} s"
