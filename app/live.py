"""The part that moves: the charts of the lanes that ran, or a sentence where nobody ran them yet."""

from __future__ import annotations

import player
import streamlit as st
from lanes import Lane

from normviz.limits import estimated_seconds


def show(lanes: list[Lane]) -> None:
    """The charts; they get their numbers past this script (see `stream`)."""
    with st.container(key="live"):
        if any(lane.run is not None for lane in lanes):
            player.show(lanes)
        else:
            seconds = sum(estimated_seconds(lane.config) for lane in lanes)
            st.info(f"Nobody has run this yet on this server. Press Train: about {seconds:.0f} s.")
