"""Parts of a page that run alone: Streamlit's fragments, most of them with a timer while work goes on."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def runs_alone() -> bool:
    """Whether this run is one of fragments, and not of the whole page."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def end_timer(key: str, busy: bool) -> None:
    """At the end of a fragment that ticks while there is work: once that has ended, run the whole
    page, which calls the fragment without a timer. `key` keeps whether it was `busy`."""
    was, st.session_state[key] = st.session_state.get(key, False), busy
    if was and not busy and runs_alone():
        st.rerun()
