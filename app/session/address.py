"""The page's URL in the browser's history: which changes add an entry, and which replace one.

Streamlit (1.67) adds an entry for every change of the query parameters, so Back would undo each slider
step. Here a change replaces the current entry, unless the page asks for a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner import get_script_run_ctx

# The query and the entry number reach the browser by two channels, in either order. If the query came
# first, it has replaced the current entry: restore that entry, then push the query as a new one. If the
# number came first, push a copy of the current entry; the query will replace the copy.
HISTORY = component(
    "history",
    js="""
      // Another page, or one that Back or Forward leads to, begins at its top. It does so before its first
      // element comes, so that nobody who scrolls on while the rest arrives is thrown back.
      const top = () => document.querySelector(".stMain")?.scrollTo({ top: 0, behavior: "instant" });
      const kept = globalThis.normvizHistory ??= (() => {
        const it = { entry: null, path: null, before: null }, push = history.pushState;
        history.pushState = function (state, title, url) {
          const next = new URL(url, location.href);
          if (next.pathname !== location.pathname) {
            push.call(history, state, title, url);
            return top();
          }
          it.before ??= location.href;
          history.replaceState(state, title, url);
        };
        addEventListener("popstate", () => { it.before = null; top(); });
        it.push = (url) => push.call(history, {}, "", url);
        return it;
      })();
      const query = (search) => {
        const found = new URLSearchParams(search);
        for (const name of ["embed", "embed_options"]) found.delete(name);
        return found.toString();
      };

      export default function ({ data }) {
        const there = query(location.search) === query(data.query);
        if (data.entry > kept.entry && kept.path === location.pathname) {
          const now = location.href;
          if (there && kept.before !== null) history.replaceState({}, "", kept.before);
          if (!there || kept.before !== null) kept.push(now);
        }
        Object.assign(kept, { entry: data.entry, path: location.pathname });
        if (there) kept.before = null;
      }
    """,
)


def params() -> dict[str, list[str]]:
    """What the address says: every parameter with all its values."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def write(wanted: Mapping[str, str]) -> None:
    """Set the query parameters, if they differ. A repeated message could arrive after Back and undo it."""
    if params() != {name: [value] for name, value in wanted.items()}:
        st.query_params.from_dict(wanted)


def new_entry() -> None:
    """Make the next change of the URL a new history entry, so that Back leads to the current one."""
    st.session_state["entry"] = st.session_state.get("entry", 0) + 1


def is_old_entry() -> bool:
    """Whether Back or Forward in the browser started this script run."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def send() -> None:
    """Send the query and the entry number to the browser. Every page calls it at its end."""
    query = urlencode(params(), doseq=True)
    with st.container(key="history"):
        HISTORY(
            key="history_part", data={"entry": st.session_state.get("entry", 0), "query": query}
        )
