"""The page's address: what a visitor arrives with, and what reloads, copies and Back lead to.

Streamlit (1.67) adds an entry to the browser's history for whatever Python writes. So only what Back shall
lead to is written. What is no entry is shown: it replaces the present one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner import get_script_run_ctx

from normviz.links import PRESENT

# A message of a script run that began before Back replaces the entry that Back led to: the run that Back
# starts shows it again.
ADDRESS = component(
    "address",
    js="""
      export default function ({ data }) {
        const url = new URL(location.href);
        if (url.pathname.split("/").pop() !== data.page) return;  // it is of the page that was left
        if (url.searchParams.toString() === new URLSearchParams(data.query).toString()) return;
        url.search = data.query;
        history.replaceState(history.state, "", url);
      }
    """,
)
TOP = component(
    "top",
    js="""
      const top = () => document.querySelector(".stMain")?.scrollTo({ top: 0, behavior: "instant" });
      addEventListener("click", ({ target }) => {
        // Streamlit's menu, which covers a phone's screen, would stay open over the page chosen in it.
        if (target.closest('[data-testid="stSidebar"][data-collapsed="false"] a')) {
          document.querySelector('[data-testid="stSidebarCollapseButton"] button')?.click();
        }
        if (target.closest(".st-key-tries button")) top();  // the duel that it opens begins there
      });
      // Streamlit would open its menu again after a reload, and on a phone that covers the page.
      addEventListener("pagehide", () => {
        for (const key of Object.keys(localStorage)) {
          if (key.startsWith("stSidebarCollapsed-")) localStorage.removeItem(key);
        }
      });
      let seen;  // before the page's first element comes, so that nobody who scrolls on is thrown back
      export default function ({ data }) {
        if (seen !== data.visit && !location.hash) top();
        seen = data.visit;
      }
    """,
)


def arrive(page: str) -> None:
    """Begin a script run of the page of this path: a page that a visitor arrives at begins at its top."""
    arrived = is_old_entry() or st.session_state.get("page") != page
    st.session_state["arrived"] = arrived
    st.session_state["page"] = page
    if arrived and (word := st.query_params.get(PRESENT)) is not None:
        st.session_state[PRESENT] = word == "1"
    st.session_state["visit"] = st.session_state.get("visit", 0) + arrived
    with st.container(key="top"):
        TOP(key="top_part", data={"visit": st.session_state["visit"]})


def presents() -> bool:
    """Whether this visit asked for the large page, by a link or a button: then it stays so on every page."""
    return st.session_state.get(PRESENT, False)


def present(is_large: bool) -> None:
    """Show the Duel page larger, for a projector, or at its usual size."""
    st.session_state[PRESENT] = is_large


def params() -> dict[str, list[str]]:
    """What a visitor arrived with: every parameter with all its values."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def add(wanted: Mapping[str, str]) -> None:
    """Write the address as a new entry, so that Back leads to the present one. Write while a page is drawn:
    what a callback writes can be lost."""
    st.query_params.from_dict(_with_view(wanted))


def show(wanted: Mapping[str, str]) -> None:
    """Write the address in place of the present one; in another site's frame it stays as it is."""
    if st.context.is_embedded:
        return
    query = urlencode(_with_view(wanted))
    data = {"page": st.session_state["page"], "query": query, "visit": st.session_state["visit"]}
    with st.container(key="address"):
        ADDRESS(key="address_part", data=data)


def _with_view(wanted: Mapping[str, str]) -> Mapping[str, str]:
    return {**wanted, PRESENT: "1"} if presents() else wanted


def is_old_entry() -> bool:
    """Whether Back or Forward in the browser started this script run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
