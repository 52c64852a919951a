"""All placements as buttons with the glyph of their block, grouped by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from normviz.catalog import CELLS, PLACEMENTS, SCHEMES
from normviz.charts.svg import data_uri
from normviz.lessons.anatomy import cell, glyph

from .buttons import button


def show(
    key: str,
    chosen: str,
    depth: int,
    color: str,
    act: Callable[..., None],
    *args: object,
    among: Sequence[str] = SCHEMES.keys(),
) -> None:
    """One button for each placement `among`; a press calls `act(scheme, *args)`. `key` tells lists apart."""
    families = dict.fromkeys(PLACEMENTS[scheme].family for scheme in among)
    rules = []
    for number, family in enumerate(families):
        st.caption(f"**{family}**")
        with st.container(horizontal=True, gap="xsmall", key=f"{key}_family_{number}"):
            for scheme in (scheme for scheme in among if PLACEMENTS[scheme].family == family):
                name = f"{key}_to_{scheme}"
                button(
                    PLACEMENTS.label(scheme), act, scheme, *args, key=name,
                    help=PLACEMENTS[scheme].sentence,
                    type="primary" if scheme == chosen else "secondary",
                )  # fmt: skip
                drawn = drawing(scheme, depth, "#ffffff" if scheme == chosen else color)
                rules.append(f".st-key-{name} button::before {{ background-image: url({drawn}); }}")
    st.html(f"<style>{' '.join(rules)}</style>")


def drawing(scheme: str, depth: int, color: str) -> str:
    """The glyph of a placement as the address of an image."""
    in_cell = scheme in CELLS
    return data_uri(cell.glyph(scheme, color) if in_cell else glyph(scheme, depth, color))
