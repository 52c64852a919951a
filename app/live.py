"""The part that moves: the charts of the lanes that ran, or a sentence where nobody ran them yet."""

from __future__ import annotations

import player
import streamlit as st
import visitor
from lanes import Lane

from normviz import hosted, texts
from normviz.limits import estimated_seconds


def show(lanes: list[Lane]) -> None:
    """The charts; they get their numbers past this script (see `stream`)."""
    with st.container(key="live"):
        if any(lane.run is not None for lane in lanes):
            player.show(lanes)
        else:
            st.info(f"Nobody has run this yet on this server. {_what_now(lanes)}.")


def _what_now(lanes: list[Lane]) -> str:
    configs = [lane.config for lane in lanes]
    try:
        hosted.check(configs)
        texts.check(configs, visitor.me())
    except hosted.Refused as why:
        words = str(why)
        return f"{words[0].upper()}{words[1:]}"
    return f"Press Train: about {sum(map(estimated_seconds, configs)):.0f} s"
