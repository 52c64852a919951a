"""A config's placement in formulas and as a diagram: what the duel and the Anatomy page share."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz import explain
from normviz.catalog import CONSTRAINTS, NORMS, SCHEMES
from normviz.charts import scheme_style
from normviz.config import RunConfig

VOCABULARY = 32
"""Of the synthetic tasks; the code shown names it once, for readers to change."""


def heading(name: str, scheme: str, color: str | None = None) -> None:
    """A lane's letter and placement beside its colour, which is its placement's own unless given."""
    color = color or scheme_style(scheme).color
    st.html(
        f'<span class="lane-name" style="border-color:{color}">{name} '
        f"{escape(SCHEMES.label(scheme))}</span>",
        width="content",
    )


def diagram(config: RunConfig, color: str | None = None) -> None:
    norm, color = NORMS.label(config.placed().norm), color or scheme_style(config.scheme).color
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
    norm = NORMS.label(config.placed().norm)
    return f"J is a Jacobian, N the norm ({norm}), F attention or FFN."


def about_norm(config: RunConfig) -> str:
    """What there is to know about the chosen norm: that it is not used, or its warning."""
    if own := SCHEMES[config.scheme].norm:
        label = SCHEMES.label(config.scheme)
        return f"{label} brings its own norm, {NORMS.label(own)}: the one chosen is not used."
    return NORMS[config.norm].warning


def constraint(config: RunConfig) -> str:
    """What the scheme does to the weights besides learning them; empty without anything."""
    key = SCHEMES[config.scheme].constraint
    return "" if key == "none" else CONSTRAINTS[key].sentence


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
