"""The player as a component of a page: mounts it, and hears what was chosen in it and when a run changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from streamlit.components.v2 import component

from normviz.catalog import PROBES
from normviz.player import SCRIPTS, VIEWS, View, css, version

from ..session.page_state import chosen

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
      follow: () => { if (root.what.asked) document.querySelector(".sheet")?.removeAttribute("open"); },
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
.nv-root { --nv-accent: var(--st-primary-color);
  --nv-paper: var(--st-background-color); --nv-ink: var(--st-text-color);
  --nv-line: var(--st-border-color); --nv-field: var(--st-secondary-background-color); }
""",
    js=MOUNT,
    isolate_styles=False,
)


class Shown(Protocol):
    """What a page remembers of its charts: the quantity, and the chart below loss and bars."""

    probe: str
    view: View


def show(key: str, what: dict[str, Any], shown: Shown) -> None:
    """The charts of stored runs. `what` is what the player's `update` takes; `shown` gets what is chosen in
    them."""
    scripts = [f"{name}-{version(text)}" for name, text in SCRIPTS.items()]
    PLAYER(
        key=key, data={"what": what, "scripts": scripts},
        on_probe_change=partial(_take, key, shown, "probe", PROBES.keys()),
        on_view_change=partial(_take, key, shown, "view", VIEWS),
        on_changed_change=lambda: None, height="content",
    )  # fmt: skip


def _take(key: str, shown: Shown, name: str, allowed: Sequence[str]) -> None:
    """Anybody may send anything: what no player of ours says changes nothing."""
    if (word := chosen(key).get(name)) in allowed:
        setattr(shown, name, word)
