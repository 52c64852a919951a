"""A config's placement as diagram, formulas and sentences, for the duel and the Anatomy page."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz import anatomy
from normviz.catalog import CONSTRAINTS, NORMS, SCHEMES
from normviz.charts import scheme_style
from normviz.config import RunConfig

VOCABULARY = 32
"""The vocabulary size in the code shown: that of the synthetic tasks. A reader changes it in one place."""


def heading(name: str, scheme: str, color: str | None = None) -> None:
    """A lane's letter, placement and colour; by default the colour of the placement."""
    color = color or scheme_style(scheme).color
    st.html(
        f'<span class="lane-name" style="border-color:{color}">{name} '
        f"{escape(SCHEMES.label(scheme))}</span>",
        width="content",
    )


def diagram(config: RunConfig, color: str | None = None) -> None:
    norm, color = NORMS.label(config.placed().norm), color or scheme_style(config.scheme).color
    label = SCHEMES.label(config.scheme)
    st.image(
        anatomy.diagram(config.scheme, config.depth, norm, color), width=244,
        alt=f"Diagram of a block: where {label} puts the norm",
    )  # fmt: skip


def formulas(config: RunConfig, before: str = "") -> None:
    """The formula of each sublayer, with its position after `before` as a caption."""
    for where, latex in anatomy.formula(config.scheme, config.depth):
        if where:
            st.caption(before + where)
        st.latex(latex)


def gradients(config: RunConfig) -> None:
    for _, latex in anatomy.gradient_path(config.scheme, config.depth):
        st.latex(latex)


def constants(config: RunConfig) -> None:
    """The named gains with their values at the config's depth."""
    for line in anatomy.constants(config.scheme, config.depth):
        st.latex(line)


def letters(config: RunConfig) -> str:
    """A sentence that explains the letters in the formulas."""
    norm = NORMS.label(config.placed().norm)
    return f"J is a Jacobian, N the norm ({norm}), F attention or FFN."


def about_norm(config: RunConfig) -> str:
    """A warning about the chosen norm: the scheme does not use it, or the norm's own warning."""
    if own := SCHEMES[config.scheme].norm:
        label = SCHEMES.label(config.scheme)
        return f"{label} brings its own norm, {NORMS.label(own)}. The norm chosen here is not used."
    return NORMS[config.norm].warning


def constraint(config: RunConfig) -> str:
    """A sentence on the scheme's constraint of the weights; empty without one."""
    key = SCHEMES[config.scheme].constraint
    return "" if key == "none" else CONSTRAINTS[key].sentence


def ends(config: RunConfig) -> str:
    """The scheme's norms outside of its blocks, in words; empty without any."""
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
