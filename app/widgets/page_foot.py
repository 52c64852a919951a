"""What every page has below it: its words, the switch of the shortcuts, and what screen readers hear."""

from __future__ import annotations

import streamlit as st
from streamlit.components.v2 import component

from normviz.config import engine_here
from normviz.runs.engines import ENGINES, plain

from ..session.markdown import literal, sentence
from . import glossary, shortcuts

# A status is read out when its text changes, so not when the page opens. What scrolls and holds nothing
# that the Tab key reaches gets a stop of its own, or its end can't be read without a pointer.
PARTS = component(
    "page_parts",
    html='<p role="status" class="page-status"></p>',
    js="""
      const SCROLLS = { ".katex-display": "Formula", ".stCode pre": "Code" };
      const reach = () => {
        for (const [selector, name] of Object.entries(SCROLLS)) {
          for (const part of document.querySelectorAll(selector)) {
            const scrolls = part.scrollWidth > part.clientWidth || part.scrollHeight > part.clientHeight;
            if (scrolls === part.hasAttribute("tabindex")) continue;
            if (!scrolls) {
              for (const given of ["tabindex", "role", "aria-label"]) part.removeAttribute(given);
              continue;
            }
            part.tabIndex = 0;
            part.setAttribute("role", "group");
            part.setAttribute("aria-label", name);
          }
        }
      };

      // Vega knows what lies at a click from where the pointer moved, and a tap moves none.
      const point = ({ target, clientX, clientY }) => {
        if (!target.matches?.(".stVegaLiteChart canvas")) return;
        target.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX, clientY }));
      };

      // Says so where the server gives no answer, once the browser has lost its network or Streamlit its
      // line. A line does not close by itself when the network goes, and the server may be on this machine.
      const SILENT = 3000;
      const watch = () => {
        const words = Object.assign(document.createElement("p"), { className: "lost", hidden: true });
        words.setAttribute("role", "alert");
        document.body.append(words);
        let waits = null;
        const ask = async () => {
          const asked = { cache: "no-store", signal: AbortSignal.timeout(SILENT) };
          const answer = await fetch(new URL("_stcore/health", document.baseURI), asked).catch(() => null);
          words.hidden = Boolean(answer?.ok);
          words.textContent = words.hidden ? "" : "Connection lost: trying again";
          waits = words.hidden ? null : setTimeout(ask, 1000);
        };
        const soon = () => { waits ??= setTimeout(ask, SILENT); };
        addEventListener("offline", soon);
        const state = "data-test-connection-state";
        new MutationObserver(([{ target }]) => { if (target.getAttribute(state) !== "CONNECTED") soon(); })
          .observe(document.body, { subtree: true, attributeFilter: [state] });
      };

      export default function ({ data, parentElement }) {
        const status = parentElement.querySelector(".page-status");
        if (status.said !== undefined && status.said !== data.said) status.textContent = data.said;
        status.said = data.said;
        if (status.off !== undefined && status.off !== data.off) {
          document.cookie = `${data.cookie}=off; path=/; samesite=lax; max-age=${data.off ? 31536000 : 0}`;
        }
        status.off = data.off;
        // Once for the whole visit: parts come and go while this one stays or is mounted again.
        globalThis.normvizReach ??= (() => {
          let waits = null;
          const soon = () => { waits ??= setTimeout(() => { waits = null; reach(); }, 200); };
          new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
          addEventListener("resize", soon);
          addEventListener("mousedown", point, true);
          watch();
          return soon;
        })();
        globalThis.normvizReach();
      }
    """,
    isolate_styles=False,
)


def announce(sentence: str) -> None:
    """Have a screen reader read this out, where it differs from what the page said before."""
    st.session_state["announced"] = sentence


def show() -> None:
    """The foot of a page. Every page shows it at its end."""
    with st.container(key="page_parts"):
        PARTS(
            key="page_parts_part",
            data={
                "said": st.session_state.pop("announced", ""), "off": not shortcuts.are_on(),
                "cookie": shortcuts.COOKIE,
            },
        )  # fmt: skip
    if st.context.is_embedded:
        return
    with st.container(
        key="page_foot", horizontal=True, vertical_alignment="center", gap="medium"
    ):  # fmt: skip
        glossary.sentences()
        if st.button("All words", key="all_words", type="tertiary", icon=":material/menu_book:"):
            glossary.every()
        shortcuts.setting()
        name, why = engine_here()
        about = literal(sentence(plain(why))) if why else None
        st.caption(f"Runs train {ENGINES[name]}", help=about, width="content")
