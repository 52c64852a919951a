"""Share and take away: the link, and the numbers."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import state
import streamlit as st
from backend import Shared
from lanes import Lane
from streamlit.components.v2 import component

from normviz.links import encode

COPY = component(
    "copy_link",
    html='<button type="button">Copy link</button><span role="status"></span>',
    css="""
      button { font: inherit; font-size: .875rem; color: var(--st-text-color);
        background: var(--st-background-color);
        border: 1px solid var(--st-border-color); border-radius: .5rem; padding: .35rem .75rem;
        cursor: pointer; min-height: 2.5rem; }
      button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
      span { margin-left: .6rem; font-size: .9rem; }
    """,
    js="""
      export default function ({ data, parentElement }) {
        const button = parentElement.querySelector("button");
        const status = parentElement.querySelector("span");
        const url = () => location.origin + location.pathname + "?" + data.query;
        button.dataset.link = url();
        button.onclick = async () => {
          try { await navigator.clipboard.writeText(url()); status.textContent = "Copied"; }
          catch { status.textContent = "The browser forbids it: copy the link shown below"; }
          setTimeout(() => { status.textContent = ""; }, 4000);
        };
      }
    """,
)


def query(lanes: list[Lane]) -> str:
    """The query string of this duel, with what it shows."""
    return f"{encode([lane.config for lane in lanes])}&{urlencode(state.view_params())}"


def address(lanes: list[Lane]) -> str:
    """The whole link."""
    return f"{(st.context.url or '').split('?')[0]}?{query(lanes)}"


def show(lanes: list[Lane], shared: Shared) -> None:
    """Copy link, link text, CSV, Parquet and configs."""
    link = query(lanes)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        COPY(key="copy_link", data={"query": link}, height="content", width="content")
        runs = {lane.name: lane.run for lane in lanes if lane.run is not None and lane.is_current}
        done = bool(runs) and not any(run.is_open for run in runs.values())
        st.download_button(
            "CSV", lambda: shared.frames.tidy(runs).to_csv(index=False, na_rep="nan"),
            "normviz.csv", "text/csv", disabled=not done, on_click="ignore",
            help="Every number of every lane as one long table: lane, step, layer, probe, value",
        )  # fmt: skip
        st.download_button(
            "Parquet", lambda: shared.frames.tidy(runs).to_parquet(index=False),
            "normviz.parquet", "application/vnd.apache.parquet", disabled=not done,
            on_click="ignore",
        )  # fmt: skip
        configs = {lane.name: lane.config.model_dump(mode="json") for lane in lanes}
        st.download_button(
            "Settings (JSON)", json.dumps(configs, indent=1), "normviz.json", "application/json",
            on_click="ignore",
        )  # fmt: skip
    with st.expander("The link, and the same in a terminal"):
        address = (st.context.url or "").split("?")[0]
        st.code(f"{address}?{link}", language=None, wrap_lines=True)
        for lane in lanes:
            st.code(f"normviz run '?{encode([lane.config])}'", language="bash", wrap_lines=True)
