"""A config's placement as diagram, formulas and sentences, for the duel and the Catalogue page."""

from __future__ import annotations

from html import escape

import streamlit as st

from normviz.catalog import CELLS, CONSTRAINTS, FAMILIES, NORMS, PLACEMENTS, SCHEMES
from normviz.charts import scheme_style
from normviz.config import RunConfig
from normviz.lessons import anatomy
from normviz.lessons.anatomy import cell
from normviz.lessons.anatomy.large import in_family

VOCABULARY = 32
"""The vocabulary size in the code shown: that of the synthetic tasks. A reader changes it in one place."""


def heading(name: str, scheme: str, color: str) -> None:
    """A lane's letter and placement as a heading, in its colour."""
    st.html(
        f'<h2 class="lane-name" style="border-color:{color}">{name} '
        f"{escape(PLACEMENTS.label(scheme))}</h2>",
        width="content",
    )


def diagram(config: RunConfig, color: str | None = None) -> None:
    """The diagram of a config's block or cell."""
    norm, color = NORMS.label(config.placed().norm), color or scheme_style(config.scheme).color
    if config.scheme in CELLS:
        family_cell = CELLS[config.scheme]
        st.image(
            cell.diagram(config, norm, color),
            width=364,
            alt=f"{family_cell.label}. {family_cell.sentence}",
        )
        return
    scheme = SCHEMES[config.scheme]
    picture = in_family(config, anatomy.diagram(config.scheme, config.depth, norm, color))
    st.image(picture, width=244, alt=f"A block with {scheme.label}. {scheme.sentence}")


def formulas(config: RunConfig, before: str = "") -> None:
    """The formula of each sublayer, with its position after `before` as a caption."""
    if config.scheme in CELLS:
        for part in CELLS[config.scheme].formula(config.family).split(r", \quad "):
            st.latex(part)
        return
    for where, latex in anatomy.formula(config.scheme, config.depth):
        if where:
            st.caption(before + in_family(config, where))
        st.latex(latex)


def gradients(config: RunConfig) -> None:
    """The factor of a gradient on its way down each sublayer, or through a time step."""
    if config.scheme in CELLS:
        st.latex(cell.gradient_path(config))
        return
    for _, latex in anatomy.gradient_path(config.scheme, config.depth):
        st.latex(latex)


def constants(config: RunConfig) -> None:
    """The named gains with their values at the config's depth."""
    if config.scheme in CELLS:
        return
    for line in anatomy.constants(config.scheme, config.depth):
        st.latex(line)


def letters(config: RunConfig) -> str:
    """A sentence that explains the letters in the formulas."""
    norm = NORMS.label(config.placed().norm)
    if config.scheme in CELLS:
        return f"J is a Jacobian, N the norm ({norm}), h the state that passes from step to step."
    return in_family(config, f"J is a Jacobian, N the norm ({norm}), F attention or FFN.")


def about_norm(config: RunConfig) -> str:
    """A warning about the chosen norm: the scheme does not use it, or the norm's own warning."""
    if config.scheme in CELLS or FAMILIES[config.family].first != "attention":
        return ""  # the warnings are about positions of a sequence
    if own := SCHEMES[config.scheme].norm:
        label = SCHEMES.label(config.scheme)
        return f"{label} brings its own norm, {NORMS.label(own)}. The norm chosen here is not used."
    return NORMS[config.norm].warning


def constraint(config: RunConfig) -> str:
    """A sentence on the scheme's constraint of the weights; empty without one."""
    key = "none" if config.scheme in CELLS else SCHEMES[config.scheme].constraint
    return "" if key == "none" else CONSTRAINTS[key].sentence


def ends(config: RunConfig) -> str:
    """The scheme's norms outside of its blocks, in words; empty without any."""
    if config.scheme in CELLS:
        return ""
    scheme = SCHEMES[config.scheme]
    parts = [
        words
        for words, there in (
            ("a norm on the embedding", scheme.embed_norm),
            ("a norm before the output head", scheme.final_norm),
        )
        if there
    ]
    return " and ".join(parts)
