"""The page's address in the browser's history: what makes an entry there, and what replaces one.

Streamlit makes an entry for every change of the query (1.67), so Back would lead through each stop of
a slider. Here a change replaces the entry, unless the page says that the one before is to be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner import get_script_run_ctx

# Query and entry number come to the browser by two ways, in either order. Where the query is there
# already, the entry gets back what it said before, and the query an entry of its own; else the entry is
# copied, and the query will replace the copy.
HISTORY = component(
    "history",
    js="""
      const kept = globalThis.normvizHistory ??= (() => {
        const it = { entry: null, path: null, before: null }, push = history.pushState;
        history.pushState = function (state, title, url) {
          const next = new URL(url, location.href);
          if (next.pathname !== location.pathname) return push.call(history, state, title, url);
          it.before ??= location.href;
          history.replaceState(state, title, url);
        };
        addEventListener("popstate", () => { it.before = null; });
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
    """Let the address say this, where it does not: a message that says again what it said could arrive
    after Back, and undo it."""
    if params() != {name: [value] for name, value in wanted.items()}:
        st.query_params.from_dict(wanted)


def new_entry() -> None:
    """What the address says next makes an entry of its own: Back leads to what it says now."""
    st.session_state["entry"] = st.session_state.get("entry", 0) + 1


def is_old_entry() -> bool:
    """Whether the visitor came here by Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def tell() -> None:
    """Tell the browser; at the end of every page."""
    query = urlencode(params(), doseq=True)
    with st.container(key="history"):
        HISTORY(
            key="history_part", data={"entry": st.session_state.get("entry", 0), "query": query}
        )
