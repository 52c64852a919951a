"""The part that moves: the charts of the lanes that ran, or a sentence where nobody ran them yet."""

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
    """The charts; they get their numbers past this script (see `numbers_socket`)."""
    with st.container(key="before"):
        if earlier := [lane for lane in lanes if lane.earlier]:
            _before(earlier, shared)
    with st.container(key="live"):
        if any(lane.run is not None for lane in lanes):
            player.show(lanes)
        else:
            st.info(f"Nobody has run this yet on this server. {_what_now(lanes)}.")


def _before(lanes: list[Lane], shared: Shared) -> None:
    """What the charts show that the settings above are not, and Train."""
    named = "; ".join(f"{lane.name}: {lane.earlier}" for lane in lanes)
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            f":material/history: **Faded curves are of earlier settings** ({literal(named)}). Train "
            "shows the present ones.",
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
