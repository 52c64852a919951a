"""Why: each lane's sublayer as diagram, formula, gradient path and code, changing with the switch."""

from __future__ import annotations

import streamlit as st
from lanes import Lane

from normviz import explain
from normviz.catalog import NORMS, SCHEMES
from normviz.charts import scheme_style

VOCABULARY = 32
"""Of the synthetic tasks; the code shown names it once, for readers to change."""


def show(lanes: list[Lane]) -> None:
    """One column a lane."""
    with st.expander("Why: where the norm sits, and what a gradient passes on its way down"):
        for column, lane in zip(st.columns(len(lanes)), lanes, strict=True):
            with column:
                _lane(lane)


def _lane(lane: Lane) -> None:
    config = lane.config
    scheme = SCHEMES[config.scheme]
    norm = NORMS.label(config.norm)
    st.markdown(f"**{lane.name} {scheme.label}**")
    color = scheme_style(config.scheme).color
    st.image(explain.diagram(config.scheme, config.depth, norm, color), width=244)
    for where, latex in explain.formula(config.scheme, config.depth):
        st.caption(where)
        st.latex(latex)
    for _, latex in explain.gradient_path(config.scheme, config.depth):
        st.latex(latex)
    for line in explain.constants(config.scheme, config.depth):
        st.latex(line)
    with st.popover("PyTorch code"):
        st.code(explain.code(config, VOCABULARY), language="python")
    ends = [
        words
        for words, there in (
            ("a norm on the embedding", scheme.embed_norm),
            ("a norm before the output head", scheme.final_norm),
        )
        if there
    ]
    also = f"Also {' and '.join(ends)}. " if ends else ""
    st.caption(f"{scheme.sentence} {also}{scheme.trouble}")
    st.caption(f"J is a Jacobian, N the norm ({norm}), F attention or FFN. {scheme.source}.")
