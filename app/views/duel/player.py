"""The player on the page: mounts it, and hears which quantity it shows and when a run changed."""

from __future__ import annotations

import streamlit as st
from streamlit.components.v2 import component

from normviz.catalog import PROBES
from normviz.duel import names
from normviz.player import SCRIPTS, VIEWS, css, version
from normviz.tour import STEPS

from ...session import duel
from ...session.progress import signature
from ...widgets import shortcuts
from . import share
from .lanes import Lane

# The scripts come from routes of the server, once; the component's own script only fetches them.
MOUNT = """
const load = (name) => (globalThis.normvizScripts ??= {})[name] ??= new Promise((done, failed) => {
  const tag = document.createElement("script");
  tag.src = new URL(`normviz/${name}.js`, document.baseURI);
  tag.onload = done;
  tag.onerror = failed;
  document.head.append(tag);
});

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".nv-root");
  root.gone = false;  // Streamlit may take a component away and put it back with the same elements
  root.what = data.what;
  root.tell = { probe: (key) => setStateValue("probe", key),
                view: (key) => setStateValue("view", key),
                changed: (now) => setTriggerValue("changed", now) };
  const address = new URL("normviz/numbers", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  const ready = Promise.all(data.scripts.map(load));
  ready.then(() => {
    if (root.gone) return;
    root.player ??= normvizPlayer.mount(root, {
      source: normvizPlayer.socket(address),
      probe: (key) => root.tell.probe(key),
      view: (key) => root.tell.view(key),
      changed: (now) => root.tell.changed(now),
      follow: () => document.querySelector(".sheet")?.removeAttribute("open"),
    });
    root.player.update(root.what);
  }, () => {
    root.textContent = "The charts' script did not arrive: reload the page.";
    dispatchEvent(new Event("normviz-drawn"));  // takes away the still of the first paint
  });
  return () => { root.gone = true; root.player?.close(); root.player = undefined; };
}
"""

PLAYER = component(
    "normviz_player",
    html='<div class="nv-root"></div>',
    css=css()
    + """
.nv-root { min-height: 40rem; --nv-accent: var(--st-primary-color);
  --nv-paper: var(--st-background-color); --nv-ink: var(--st-text-color);
  --nv-line: var(--st-border-color); --nv-field: var(--st-secondary-background-color); }
""",
    js=MOUNT,
    isolate_styles=False,
)


def show(lanes: list[Lane]) -> None:
    """The charts of the lanes that have a run."""
    it = duel.duel()
    every = [lane.run for lane in lanes if lane.run]
    every = list(dict.fromkeys(every + [run for lane in lanes if lane.run for run in lane.repeats]))
    what = {
        "runs": [lane.run.id if lane.run else None for lane in lanes],
        "repeats": [[run.id for run in lane.repeats] for lane in lanes],
        "probe": it.probe,
        "view": it.view,
        "dark": st.context.theme.type == "dark",
        "earlier": [lane.earlier for lane in lanes],
        "start": it.start,
        "begins": it.start == "follow" and it.nonce > 0 and any(run.is_open for run in every),
        "cursor": it.cursor,
        "name": names.file_name([lane.config for lane in lanes]),
        "caption": share.caption(lanes),
        "park": STEPS[it.story - 1].at if it.story else None,
        "tab": "layers" if it.story else "time" if it.view != "heat" else "loss",
        "nonce": it.nonce,
        "signature": signature(every),
        "shortcuts": shortcuts.are_on(),
    }
    scripts = [f"{name}-{version(text)}" for name, text in SCRIPTS.items()]
    PLAYER(
        key="player", data={"what": what, "scripts": scripts}, on_probe_change=_probe, on_view_change=_view,
        on_changed_change=lambda: None, height="content",
    )  # fmt: skip


# Anybody may send anything: what no player of ours says changes nothing.
def _probe() -> None:
    said, it = st.session_state["player"].get("probe"), duel.duel()
    if said in PROBES.keys():  # noqa: SIM118 (a registry)
        it.probe, it.touched = said, True


def _view() -> None:
    said, it = st.session_state["player"].get("view"), duel.duel()
    if said in VIEWS:
        it.view, it.touched = said, True
