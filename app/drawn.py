"""A config's placement in formulas and as a diagram: what the duel and the Anatomy page share."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz import explain
from normviz.catalog import NORMS, SCHEMES
from normviz.charts import scheme_style
from normviz.config import RunConfig

VOCABULARY = 32
"""Of the synthetic tasks; the code shown names it once, for readers to change."""


def heading(name: str, scheme: str) -> None:
    """A lane's letter and placement beside its colour."""
    st.html(
        f'<span class="lane-name" style="border-color:{scheme_style(scheme).color}">{name} '
        f"{escape(SCHEMES.label(scheme))}</span>",
        width="content",
    )


def diagram(config: RunConfig) -> None:
    norm, color = NORMS.label(config.norm), scheme_style(config.scheme).color
    st.image(explain.diagram(config.scheme, config.depth, norm, color), width=244)


def formulas(config: RunConfig, before: str = "") -> None:
    """The sublayers, each with where it stands; `before` leads that in."""
    for where, latex in explain.formula(config.scheme, config.depth):
        if where:
            st.caption(before + where)
        st.latex(latex)


def gradients(config: RunConfig) -> None:
    for _, latex in explain.gradient_path(config.scheme, config.depth):
        st.latex(latex)


def constants(config: RunConfig) -> None:
    """The named gains with their values at the config's depth."""
    for line in explain.constants(config.scheme, config.depth):
        st.latex(line)


def letters(config: RunConfig) -> str:
    """What the formulas' letters are."""
    return f"J is a Jacobian, N the norm ({NORMS.label(config.norm)}), F attention or FFN."


def ends(config: RunConfig) -> str:
    """The norms that a scheme has outside of its blocks, in words; empty without any."""
    scheme = SCHEMES[config.scheme]
    found = [
        words
        for words, there in (
            ("a norm on the embedding", scheme.embed_norm),
            ("a norm before the output head", scheme.final_norm),
        )
        if there
    ]
    return " and ".join(found)
