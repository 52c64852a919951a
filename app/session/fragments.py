"""Parts of a page that run alone: Streamlit's fragments."""

from __future__ import annotations

from streamlit.runtime.scriptrunner import get_script_run_ctx


def runs_alone() -> bool:
    """Whether this run is one of fragments, and not of the whole page."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)
