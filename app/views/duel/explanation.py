"""The expander "Why": diagram, formula, gradient path and code of each lane's sublayers."""

from __future__ import annotations

import streamlit as st

from normviz import explain
from normviz.anatomy import DEPTHS, NAMES
from normviz.catalog import SCHEMES
from normviz.charts import lane_styles

from ...widgets import page_links, placement
from ...widgets.markdown import literal, source
from .lanes import Lane


def show(lanes: list[Lane]) -> None:
    """One column for each lane, and a link to the Anatomy page."""
    with st.expander("Why: where the norm sits, and what a gradient passes on its way down"):
        styles = lane_styles(tuple(lane.config.scheme for lane in lanes))
        for column, lane, style in zip(st.columns(len(lanes)), lanes, styles, strict=True):
            with column:
                _lane(lane, style.color)
        _more([lane for lane in lanes if lane.config.depth in DEPTHS][: len(NAMES)])


def _lane(lane: Lane, color: str) -> None:
    config = lane.config
    scheme = SCHEMES[config.scheme]
    st.markdown(f"**{lane.name} {literal(scheme.label)}**")
    placement.diagram(config, color)
    placement.formulas(config)
    placement.gradients(config)
    placement.constants(config)
    with st.popover("PyTorch code"):
        st.code(explain.code(config, placement.VOCABULARY), language="python")
    ends = placement.ends(config)
    also = f"Also {ends}. " if ends else ""
    kept = placement.constraint(config)
    st.caption(" ".join(filter(None, (scheme.sentence, also.strip(), kept, scheme.trouble))))
    st.caption(f"{placement.letters(config)} {source(scheme.source)}.")


def _more(lanes: list[Lane]) -> None:
    """A link to the anatomy of the first lanes whose depth the Anatomy page can show."""
    if lanes:
        named = " and ".join(f"{lane.name} {SCHEMES.label(lane.config.scheme)}" for lane in lanes)
        page_links.anatomy(
            [lane.config for lane in lanes], f"{named}, measured before the first step"
        )
