"""How far the cells of a map or a claim are."""

from __future__ import annotations

import streamlit as st

from normviz.formats import duration
from normviz.runs.store.cells import OpenCells


def progress(opened: OpenCells, missing: int, total: int) -> None:
    """A bar: of `total` runs so many are `missing`. While none of them trains, what they wait for."""
    if not opened.running:
        n = opened.before
        st.caption(
            f"Waits for {n} run{'s' * (n > 1)} of another map or claim."
            if n
            else "Waits for a process that trains: a few seconds."
        )
        return
    left = duration(opened.seconds)
    done = max(0, total - missing)
    st.progress(min(1.0, done / total), f"{done} of {total} runs, about {left} left")
