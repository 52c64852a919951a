"""All placements as buttons with the glyph of their block, grouped by family."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import streamlit as st

from normviz.anatomy import glyph
from normviz.catalog import SCHEMES

from .buttons import button


def show(
    key: str, chosen: str, depth: int, color: str, act: Callable[..., None], *args: object
) -> None:
    """One button for each placement; a press calls `act(scheme, *args)`. `key` tells lists apart."""
    families = dict.fromkeys(SCHEMES[one].family for one in SCHEMES.keys())  # noqa: SIM118
    rules = []
    for number, family in enumerate(families):
        st.caption(f"**{family}**")
        with st.container(horizontal=True, gap="xsmall", key=f"{key}_family_{number}"):
            for scheme in (one for one in SCHEMES.keys() if SCHEMES[one].family == family):  # noqa: SIM118
                name = f"{key}_to_{scheme}"
                button(
                    SCHEMES.label(scheme), act, scheme, *args, key=name, help=SCHEMES[scheme].sentence,
                    type="primary" if scheme == chosen else "secondary",
                )  # fmt: skip
                drawn = picture(glyph(scheme, depth, "#ffffff" if scheme == chosen else color))
                rules.append(f".st-key-{name} button::before {{ background-image: url({drawn}); }}")
    st.html(f"<style>{' '.join(rules)}</style>")


def picture(svg: str) -> str:
    """An SVG as the address of an image."""
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode('ascii')}"
