"""The page's URL in the browser's history: which changes add an entry, and which replace one.

Streamlit (1.67) adds an entry for every change of the query parameters, so Back would undo each slider
step. Here a change replaces the current entry, unless the page asks for a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode

import streamlit as st
from streamlit.components.v2 import component
from streamlit.runtime.scriptrunner import get_script_run_ctx

# Streamlit's own change of the query is ignored: it comes by another channel than the entry number, in
# either order and at any time. A message of a script run that began before Back does not undo Back.
HISTORY = component(
    "history",
    js="""
      // Another page, or one that Back or Forward leads to, begins at its top. It does so before its first
      // element comes, so that nobody who scrolls on while the rest arrives is thrown back.
      const top = () => document.querySelector(".stMain")?.scrollTo({ top: 0, behavior: "instant" });
      const LONGEST_RUN_MS = 5000;
      const OF_THE_FRAME = ["embed", "embed_options"];
      const query = (search) => {
        const found = new URLSearchParams(search);
        for (const name of OF_THE_FRAME) found.delete(name);
        return found.toString();
      };
      const kept = globalThis.normvizHistory ??= (() => {
        const it = { entry: null, page: null, path: null, back: null };
        for (const name of ["pushState", "replaceState"]) {
          it[name] = history[name].bind(history);
          history[name] = (state, title, url) => {
            if (new URL(url, location.href).pathname === location.pathname) return;
            it[name](state, title, url);
            top();
          };
        }
        addEventListener("popstate", () => {
          it.back = { query: query(location.search), until: performance.now() + LONGEST_RUN_MS };
          top();
        });
        return it;
      })();

      export default function ({ data }) {
        const { back } = kept, path = location.pathname;
        if (data.page === kept.page && path !== kept.path) return;  // it is of the page that was left
        if (back && query(data.from) !== back.query && performance.now() < back.until) return;
        kept.back = null;
        const next = new URLSearchParams(query(data.query));
        if (query(location.search) !== next.toString()) {
          const now = new URLSearchParams(location.search);
          for (const name of OF_THE_FRAME) now.getAll(name).forEach((value) => next.append(name, value));
          const url = path + (next.size ? `?${next}` : "") + location.hash;
          const isNew = data.entry > kept.entry && kept.path === path;
          kept[isNew ? "pushState" : "replaceState"]({}, "", url);
        }
        Object.assign(kept, { entry: data.entry, page: data.page, path });
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


@contextmanager
def sent(page: str) -> Iterator[None]:
    """Run the page of this path, then send the browser the query that it set, with the entry number and
    the query before."""
    before = _query()
    yield
    entry = st.session_state.get("entry", 0)
    data = {"page": page, "entry": entry, "query": _query(), "from": before}
    with st.container(key="history"):
        HISTORY(key="history_part", data=data)


def _query() -> str:
    return urlencode(params(), doseq=True)
