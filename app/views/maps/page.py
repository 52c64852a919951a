"""The Maps page: where does each placement train? Two settings are the axes; each cell is a run."""

from __future__ import annotations

import streamlit as st

from ...session import address
from ...session.backend import shared
from . import download as map_take
from . import fill as map_fill
from . import knobs as map_knobs
from . import state as map_state


def page() -> None:
    """The page, from top to bottom."""
    back = shared()
    it = map_state.maps()
    address.write(it.asked.params())
    with st.container(key="head"):
        st.markdown("# Where does it train?")
    map_knobs.show(it)
    map_fill.show(it, back)
    map_take.show(it, back)
